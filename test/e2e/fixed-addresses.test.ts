import { writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { runBerthctl } from "../lab/berthctl.ts";
import { CONF, ipPool, manifest, podManifest } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";

const owner = (name: string, more: object = {}) => ({ owner: { namespace: "shop", name, ...more } });

const CONFIG = {
  "conf.yaml": CONF,
  "lan.yaml": ipPool("lan", "10.2.0.0/28", { default: true, selection: "ascending" }),
  "reserved.yaml": [
    manifest("ReservedIP", "machines", { ips: ["10.2.0.1-10.2.0.3"] }),
    manifest("ReservedIP", "db-0", { ips: ["10.2.0.2"], ...owner("db-0") }),
    manifest("ReservedIP", "web", { ips: ["10.2.0.5"], ...owner("web") }),
    manifest("ReservedIP", "second", { ips: ["10.2.0.6"], ...owner("db-1", { interface: "net1" }) }),
    manifest("ReservedIP", "outside", { ips: ["10.9.0.6"], ...owner("lost") }),
    manifest("ReservedIP", "edge", { ips: ["10.2.0.15"], ...owner("edge") }),
    manifest("ReservedIP", "second-of-two", { ips: ["10.2.0.2"], ...owner("thief") }),
    manifest("ReservedIP", "spaced", { ips: ["10.2.0.12"], addressSpace: "lab", ...owner("spaced") }),
  ].join("---\n"),
  "pods.yaml": [
    podManifest("shop", "db-1", {
      "k8s.v1.cni.cncf.io/networks": "lab@net1",
      ippools: ["eth0", "net1"].map((nic) => ({ interface: nic, ipv4: ["lan"] })),
    }),
    podManifest("shop", "named", { ips: [{ ipv4: "10.2.0.9" }] }),
    podManifest("shop", "thief", { ips: [{ ipv4: "10.2.0.2" }] }),
    podManifest("shop", "set-1", { ips: { "set-0": [{ ipv4: "10.2.0.10" }], "set-1": [{ ipv4: "10.2.0.11" }] } }),
    podManifest("shop", "set-7", { ips: { "set-0": [{ ipv4: "10.2.0.10" }] } }),
    podManifest("shop", "heir", { ips: [{ ipv4: "10.2.0.14" }] }),
    podManifest("shop", "stray", { ips: [{ ipv4: "10.9.0.1" }] }),
    podManifest("shop", "empty", { ips: [{ interface: "eth0" }] }),
    podManifest("shop", "wrong", { ips: { wrong: [{ ipv4: "fd00::1" }] } }),
    podManifest("shop", "twice", { ips: [{ ipv4: "10.2.0.12" }, { ipv4: "10.2.0.13" }] }),
  ].join("---\n"),
};

it("a pod gets the address that is named for it, before any other pod and after its own", () =>
  withWorld(CONFIG, async (world) => {
    const add = async (pod: string) => (await world.add(pod.replace("/", "-"), { pod: `shop/${pod}/${pod}` }))[0];
    const rows = [
      ["another pod gets the rest", "other", "10.2.0.4"],
      ["a reservation with an owner comes before one without", "db-0", "10.2.0.2"],
      ["a Deployment's pod", "web-6d4cf56db6-x7k2p", "10.2.0.5"],
      ["an address reserved for another NIC is not this one's", "db-1", "10.2.0.7"],
      ["the annotation", "named", "10.2.0.9"],
      ["the annotation, by the pod's name", "set-1", "10.2.0.11"],
      ["the annotation, of other pods", "set-7", "10.2.0.8"],
    ] as const;
    for (const [what, pod, address] of rows) expect(await add(pod), what).toBe(address);
    const second = { pod: "shop/db-1/db-1", ifName: "net1" };
    expect((await world.add("db-1", second))[0], "a reservation for a second NIC").toBe("10.2.0.6");
    // The next pod of the name waits until the address has rested.
    await world.del("db-0");
    expect((await world.add("next", { pod: "shop/db-0/another" }))[0]).toBe("10.2.0.2");
    const refusals = [
      [
        "web-6d4cf56db6-zzzzz",
        101,
        'requested by ReservedIP "web" is refused: 10.2.0.5: it is Bound to pod shop/web-6d4',
      ],
      ["lost", 100, 'requested by ReservedIP "outside" is refused: 10.9.0.6: pool "lan" may not hand out 10.9.0.6'],
      [
        "edge",
        100,
        'ReservedIP "edge" is refused: 10.2.0.15: pool "lan" may not hand out 10.2.0.15: it is the broadcast',
      ],
      ["spaced", 100, 'pool "lan" may not hand out 10.2.0.12: it is reserved in address space "lab"'],
      ["thief", 100, 'pool "lan" may not hand out 10.2.0.2: ReservedIP "db-0" has it'],
      ["stray", 100, 'requested by annotation "ipam.vendor.io/ips" is refused: 10.9.0.1: pool "lan" may not'],
      ["empty", 102, 'field "[0]": found an object, want ipv4, ipv6, or both'],
      ["wrong", 102, 'field "wrong[0].ipv4": found "fd00::1", want an IPv4 address'],
      ["twice", 102, 'field "[1].interface": found nothing, want a value other than that of entry [0]'],
    ] as const;
    for (const [pod, code, text] of refusals) {
      const { code: found, msg } = await world.refused("ADD", pod, { pod: `shop/${pod}/${pod}` });
      expect([pod, found, msg]).toEqual([pod, code, expect.stringContaining(text)]);
    }
  }));

it("berthctl reserve prints reservations that keep addresses for their owners, and refuses another's", () =>
  withWorld(CONFIG, async (world) => {
    const berthctl = (...words: string[]) => runBerthctl("--socket", world.agent.socket, ...words);
    expect((await world.add("other", { pod: "shop/other/other" }))[0]).toBe("10.2.0.4");
    const file = `${world.agent.configDir}.csv`;
    await writeFile(file, 'address;owner\r\n10.2.0.12;"shop/printer"\r\n# later\r\n10.2.0.13;shop/scan;eth0\r\n');
    const printed = await berthctl("reserve", "--file", file);
    expect(printed).toMatchObject({ code: 0, error: "" });
    await world.agent.write("more.yaml", printed.out);
    const explained = async () => (await berthctl("explain", "printer", "-n", "shop")).out;
    await expect
      .poll(explained)
      .toContain('would get 10.2.0.12 of pool "lan", which its annotation, its IPAMClaim, a ReservedIP');
    expect((await world.add("printer", { pod: "shop/printer/printer" }))[0]).toBe("10.2.0.12");
    expect((await berthctl("ip", "10.2.0.13")).out).toContain(
      '10.2.0.13: kept in pool lan (10.2.0.0/28): ReservedIP "10.2.0.13" has it for shop/scan',
    );
    const rows = [
      [
        "10.2.0.4",
        "shop/db-9",
        1,
        "10.2.0.4: it is Bound to shop/other, not to shop/db-9, and stays until it is released",
      ],
      [
        "10.2.0.13",
        "shop/db-9",
        1,
        'pool lan never gives it to shop/db-9: ReservedIP "10.2.0.13" has it for shop/scan',
      ],
      ["10.2.0.13", "shop/scan", 0, ""],
      ["10.2.0.15", "shop/db-9", 1, "pool lan never gives it to shop/db-9: it is the broadcast address of the subnet"],
      ["10.7.0.1", "shop/db-9", 1, "10.7.0.1: no pool has it in its subnet"],
      ["10.2.0.9", "shop/db-0", 1, 'ReservedIP "db-0" has 10.2.0.2 for shop/db-0 (IPv4 of its first NIC)'],
      ["10.2.0", "shop/db-9", 2, 'Expected an address such as 10.6.0.21, found "10.2.0"'],
      ["10.2.0.9", "db-9", 2, 'Expected an owner as namespace/name, found "db-9"'],
      ["10.2.0.9", "Shop/db-9", 2, 'field "spec.owner.namespace": found "Shop", want the name of a namespace'],
    ] as const;
    for (const [address, owner, code, text] of rows) {
      const ending = await berthctl("reserve", address, "--for", owner);
      expect([address, ending.code, ending.error]).toEqual([address, code, expect.stringContaining(text)]);
    }
    await world.del("other");
    expect(await berthctl("reserve", "10.2.0.4", "--for", "shop/db-9")).toMatchObject({ code: 0, error: "" });
    for (const [second, found] of [
      ["10.2.0.12,shop/b", "10.2.0.12"],
      ["10.2.0.11,shop/a", "shop/a (IPv4 of its first NIC)"],
    ]) {
      await writeFile(file, `10.2.0.12,shop/a\n${second}\n`);
      expect((await berthctl("reserve", "--file", file)).error).toContain(`line 2: found ${found}, want another one`);
    }
  }));

it("a reservation keeps its address until its time has passed, and berthctl tells the state of each", () =>
  withWorld(CONFIG, async (world) => {
    const berthctl = (...words: string[]) => runBerthctl("--socket", world.agent.socket, ...words);
    const listed = async (...words: string[]) =>
      JSON.parse((await berthctl("reservations", "-o", "json", ...words)).out);
    const statesOf = async () =>
      (await listed()).map(({ name, state, details }: Record<string, string>) =>
        `${name} ${state} ${details ?? ""}`.trim(),
      );
    const printed = await berthctl("reserve", "10.2.0.14", "--for", "shop/guest", "--until", "6s");
    await world.agent.write("brief.yaml", printed.out.replace("name: 10.2.0.14", "name: brief"));
    await expect.poll(statesOf).toContain("brief Waiting");
    const refused = await world.refused("ADD", "heir", { pod: "shop/heir/heir" });
    expect(refused.msg).toContain('10.2.0.14: pool "lan" may not hand out 10.2.0.14: ReservedIP "brief" has it');
    expect((await world.add("guest", { pod: "shop/guest/guest" }))[0]).toBe("10.2.0.14");
    expect(await statesOf()).toContain("brief InUse shop/guest");
    expect((await world.add("web", { pod: "shop/named/named" }))[0]).toBe("10.2.0.9");
    await world.agent.write("taken.yaml", manifest("ReservedIP", "taken", { ips: ["10.2.0.9"], ...owner("none") }));
    const ended = "brief Expired shop/guest";
    await expect
      .poll(statesOf, { timeout: 15_000 })
      .toEqual([
        ended,
        "db-0 Waiting",
        "edge Refused pool lan: it is the broadcast address of the subnet",
        "machines Reserved",
        "outside Refused no pool has it in its subnet",
        "second Waiting",
        'second-of-two Refused pool lan: ReservedIP "db-0" has it for shop/db-0',
        "spaced Refused no pool has it in its subnet",
        "taken Taken shop/named",
        "web Waiting",
      ]);
    expect(await listed("-n", "other")).toEqual([]);
    const none = await berthctl("release", "10.2.0.2", "--yes");
    expect([none.code, none.error]).toEqual([1, expect.stringMatching(/ReservedIP "db-0" keeps .* no pod has it/)]);
    const used = await berthctl("release", "10.2.0.9", "--dry-run");
    expect(used.error).toContain('ReservedIP "taken" keeps 10.2.0.9 for shop/none until it is deleted');
    expect(used.out).toContain("10.2.0.9: Bound to eth0 of pod shop/named → Cooling");
    await world.del("guest");
    const heir = () => world.add("heir", { pod: "shop/heir/heir" }).then(([ip]) => ip, String);
    await expect.poll(heir, { timeout: 15_000 }).toBe("10.2.0.14");
    const rows = [
      ["an hour", 'Option --until: found "an hour", want 14:02, 14:02:30, 2026-01-31T14:02:00Z, or 1h30m from now'],
      ["2020-01-31T14:02:00Z", 'Option --until: found "2020-01-31T14:02:00Z", want a time to come'],
    ] as const;
    for (const [until, text] of rows) {
      const ending = await berthctl("reserve", "10.2.0.10", "--for", "shop/a", "--until", until);
      expect([ending.code, ending.error]).toEqual([2, expect.stringContaining(text)]);
    }
  }));
