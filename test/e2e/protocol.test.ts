import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_VERSIONS, CONF, ipPool, podManifest, vendorConf } from "../lab/manifests.ts";
import { type CallOptions, type NetnsWorld, openAlone, withWorld } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";

const BLUE = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24", { gateway: "10.6.0.1", default: true }) };
const DUAL = {
  "conf.yaml": vendorConf({ allocationCooldown: "1s" }),
  "blue.yaml": ipPool("blue", "10.6.0.0/24", { gateway: "10.6.0.1", default: true, selection: "ascending" }),
  "six.yaml": ipPool("six", "fd00:6::/64", { gateway: "fd00:6::1", default: true, selection: "ascending" }),
};

/** Of all tests that do not name another. */
let world: NetnsWorld;
beforeAll(async () => {
  world = await openAlone({ ...BLUE, "pod.yaml": podManifest("shop", "web-0", {}) });
});
afterAll(() => world?.delete());

const stateOf = async (address: string | undefined): Promise<string | undefined> =>
  (await world.agent.get("/v1/allocations")).find((row: { address: string }) => row.address === address)?.state;

it("ADD answers in the caller's version", () =>
  withWorld(DUAL, async (world) => {
    for (const [index, cniVersion] of ALL_VERSIONS.entries()) {
      const { stdout } = await world.call("ADD", `c${index}`, { conf: { cniVersion } });
      const old = cniVersion < "1.0.0";
      expect(stdout).toEqual({
        cniVersion,
        ips: [
          { ...(old ? { version: "4" } : {}), address: `10.6.0.${index + 2}/24`, gateway: "10.6.0.1" },
          {
            ...(old ? { version: "6" } : {}),
            address: `fd00:6::${index === 0 ? "" : index + 1}/64`,
            gateway: "fd00:6::1",
          },
        ],
        routes: [
          { dst: "0.0.0.0/0", gw: "10.6.0.1" },
          { dst: "::/0", gw: "fd00:6::1" },
        ],
      });
    }
  }));

it("DEL needs no pool, pod or known plugin configuration", async () => {
  const [address] = await world.add("c0");
  await world.agent.remove("blue.yaml");
  await world.del("c0", { conf: { ipam: { type: "berth", unknown: true }, prevResult: "broken" } });
  expect(await stateOf(address)).toBe("Cooling");
  await world.agent.write("blue.yaml", BLUE["blue.yaml"]);
});

it("CHECK compares result, record, pool and link, and heals nothing", async () => {
  const { stdout: prevResult } = await world.call("ADD", "c1", { conf: { cniVersion: "0.4.0" } });
  const [ip] = prevResult.ips;
  const [address] = ip.address.split("/");
  await world.sandbox.ip("link add eth0 type veth peer name peer0");
  await world.sandbox.ip(`addr add ${ip.address} dev eth0`);
  const passes = async (conf: Record<string, unknown>) => {
    const outcome = await world.call("CHECK", "c1", { conf });
    expect([outcome.exitCode, outcome.text]).toEqual([0, ""]);
  };
  const fails = async (conf: Record<string, unknown>) => {
    const { code, msg } = await world.refused("CHECK", "c1", { conf });
    return [code, msg];
  };
  for (const cniVersion of ALL_VERSIONS.slice(2)) {
    const { stdout } = await world.call("ADD", "c1", { conf: { cniVersion } });
    await passes({ cniVersion, prevResult: stdout });
  }
  const withIps = (...ips: object[]) => ({ prevResult: { ...prevResult, ips } });
  const other = { address: "10.6.0.250/24" };
  expect(await fails({})).toEqual([7, 'CHECK needs "prevResult", found nothing']);
  expect(await fails(withIps(other))).toEqual([
    7,
    `"prevResult" lacks ${address}, which is recorded for interface "eth0"`,
  ]);
  expect(await fails(withIps(ip, other))).toEqual([
    7,
    `"prevResult" has 10.6.0.250, recorded for interface "eth0" is ${address}`,
  ]);
  // A result without a gateway, or a pool without one, says nothing.
  const foreign = withIps({ ...ip, gateway: "10.6.0.254" });
  expect(await fails(foreign)).toEqual([
    7,
    `"prevResult" has gateway 10.6.0.254 for ${address}, pool "blue" has 10.6.0.1; a new pod gets the pool's`,
  ]);
  for (const gateway of [undefined, "10.6.0.1"]) await passes(withIps({ ...ip, gateway }));
  await world.agent.write("blue.yaml", ipPool("blue", "10.6.0.0/24", { default: true }));
  await eventually(
    () => world.call("CHECK", "c1", { conf: foreign }),
    ({ exitCode }) => exitCode === 0,
  );
  await passes(foreign);
  await world.sandbox.ip("addr flush dev eth0");
  const gone = `Interface "eth0" in ${world.sandbox.path} lacks its address ${ip.address}`;
  expect(await fails({ prevResult })).toEqual([106, gone]);
  expect(await world.sandbox.ip("-4 addr show dev eth0")).toBe("");
  await world.sandbox.ip("link delete eth0");
  expect((await fails({ prevResult }))[1]).toContain('Interface "eth0" is missing in');
  await world.del("c1");
  expect(await fails({ prevResult })).toEqual([3, 'No address is recorded for interface "eth0" of container c1']);
});

const TEXT = { cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth" } };

describe("a DEL of an attachment that no ADD can have made", () => {
  /** A call that is an attachment's but for one thing. */
  const ODD: readonly [what: string, options: CallOptions][] = [
    ["no JSON", { stdin: "{" }],
    ["nothing", { stdin: "" }],
    ["no text", { stdin: "\0\x1b[2J\ufffd" }],
    ["2 MiB", { stdin: { ...TEXT, padding: "x".repeat(2 ** 21) } }],
    ["a list", { stdin: "[]" }],
    ["100,000 lists in each other", { stdin: `${"[".repeat(100_000)}${"]".repeat(100_000)}` }],
    ...["cniVersion", "name", "type", "ipam", "prevResult", "runtimeConfig", "args", "dns", "mode", "master"].flatMap(
      (key) =>
        [7, null, "", "../\u0000", "9.9.9", [], [[7]], {}, { ips: 7, cni: 7, type: 7 }, true].map(
          (value): [string, CallOptions] => [
            `${key} ${JSON.stringify(value)}`,
            { stdin: { ...TEXT, ...(key === "name" && value === "9.9.9" ? {} : { [key]: value }) } },
          ],
        ),
    ),
    ...["CNI_NETNS", "CNI_ARGS", "CNI_PATH", "CNI_NETNS_OVERRIDE"].flatMap((name) =>
      ["", "/etc/hostname", "a\nb", " é ", "x".repeat(70_000)].map((value): [string, CallOptions] => [
        `${name} ${JSON.stringify(value.slice(0, 20))}`,
        { env: { [name]: value } },
      ]),
    ),
  ];
  const NOT_MADE: readonly [what: string, options: CallOptions][] = ["CNI_CONTAINERID", "CNI_IFNAME"].flatMap((name) =>
    [undefined, "", "../c", "a b", "a\nb", "%zz", "é".repeat(200), "x".repeat(70_000)].map((value) => [
      `${name} ${JSON.stringify(value?.slice(0, 20))}`,
      { env: { [name]: value } },
    ]),
  );

  itLong("beside macvlan with host-local, which may refuse it", async () => {
    const ipam = JSON.stringify({ type: "host-local", subnet: "10.9.0.0/24", dataDir: world.agent.directory });
    const rows = [...ODD, ...NOT_MADE];
    const del = async ({ env = {}, stdin = TEXT }: CallOptions) => {
      const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
      const call = { plugin: "macvlan", stdin: text.replace('{"type":"berth"}', ipam), env };
      return (await world.call("DEL", "c1", call)).exitCode;
    };
    expect(await del({})).toBe(0);
    let refused = 0;
    for (const [, options] of rows) if ((await del(options)) !== 0) refused++;
    console.log(`macvlan with host-local refuses ${refused} of ${rows.length}`);
  });

  it.each(["berth", "coordinator", "ifacer"])("%s gives back all that it can know of, and succeeds", async (plugin) => {
    for (const [what, { env, ...options }] of [...ODD, ...NOT_MADE]) {
      const isMade = !NOT_MADE.some(([title]) => title === what);
      const [address] = plugin === "berth" ? await world.add("c1") : [];
      const call = { plugin, ...options, env: { ...world.agent.env, ...env } };
      const { exitCode, text } = await world.call("DEL", "c1", call);
      expect(`${what}: ${exitCode} ${text}`).toBe(`${what}: 0 `);
      // On a busy machine it has cooled already.
      if (plugin === "berth")
        expect(`${what}: ${(await stateOf(address)) ?? "Cooling"}`).toBe(`${what}: ${isMade ? "Cooling" : "Bound"}`);
    }
  });

  it("a name of an interface that the kernel takes is ADD's, too", async () => {
    for (const ifName of ["é0", "a@b", "#1", '"q"', "a;b", "Ω-1", "(7)"]) {
      const [address] = await world.add("c1", { ifName });
      await world.del("c1", { ifName });
      expect(await stateOf(address)).toBe("Cooling");
    }
  });
});

it("an ADD with more keys than a definition may have is refused, but not for keys that the runtime adds", async () => {
  const long = "x".repeat(65_536);
  const { code, msg } = await world.refused("ADD", "c1", { stdin: { ...TEXT, padding: long } });
  expect([code, msg]).toEqual([7, expect.stringMatching(/found \d+ bytes without prevResult, .*want at most 65536/)]);
  await world.add("c1", { stdin: { ...TEXT, runtimeConfig: { "io.kubernetes.cri.pod-annotations": { long } } } });
});

it("many large ADDs at once leave the agent's thread to others between them", async () => {
  const keys = Object.fromEntries(Array.from({ length: 65_000 }, (_, index) => [`k${index}`, {}]));
  const stdin = { ...TEXT, keys };
  let refused = 0;
  const large = Array.from({ length: 24 }, async (_, index) => {
    await world.refused("ADD", `large${index}`, { stdin });
    refused++;
  });
  let others = 0;
  for (; refused < large.length; others++) {
    await world.add("small");
    await world.del("small");
  }
  await Promise.all(large);
  // Without a pause two of them end.
  expect(others).toBeGreaterThan(4);
});

describe("STATUS and VERSION", () => {
  it("a file that never was right: STATUS and ADD answer with code 50 and say which", () =>
    withWorld({ ...BLUE, "reserved.yaml": "kind: ReservedIP\n" }, async (world) => {
      const status = await world.refused("STATUS", "", { conf: { cniVersion: "1.1.0" } });
      expect(status).toMatchObject({ code: 50, msg: expect.stringContaining("reserved.yaml") });
      expect(status.details).toContain("reserved.yaml");
      expect((await world.refused("ADD", "c1")).code).toBe(50);
      expect((await world.agent.request("/v1/health")).status).toBe(503);
      await world.agent.remove("reserved.yaml");
      expect(await world.add("c1")).toHaveLength(1);
    }));

  it("STATUS is silent when all is well; a file that went bad keeps its last content, and is reported", async () => {
    const well = await world.call("STATUS", "", { conf: { cniVersion: "1.1.0" } });
    expect([well.exitCode, well.text, well.stderr]).toEqual([0, "", ""]);
    const version = await world.call("VERSION", "", { conf: { cniVersion: "0.4.0" } });
    expect(version.stdout).toEqual({ cniVersion: "0.4.0", supportedVersions: ALL_VERSIONS });
    await world.agent.write("blue.yaml", ipPool("blue", "10.6.0.0/24", { gatway: "10.6.0.1", default: true }));
    expect(await world.add("c1")).toHaveLength(1);
    const outcome = await world.call("STATUS", "", { conf: { cniVersion: "1.1.0" } });
    expect(outcome.exitCode).toBe(0);
    expect(outcome.stderr).toContain("gatway");
    const { status, problems } = await world.agent.get("/v1/health");
    expect(status).toBe("ready");
    expect(problems.join()).toMatch(/blue\.yaml.*spec\.gatway/);
    expect(world.agent.stderr()).toContain("A manifest is invalid");
    await world.agent.write("blue.yaml", BLUE["blue.yaml"]);
    expect(await world.agent.get("/v1/health")).toMatchObject({ problems: [] });
  });
});

describe("other plugins", () => {
  it.each(["coordinator", "ifacer"])("%s refuses an entry that says too little, its DEL does not", async (plugin) => {
    expect((await world.refused("ADD", "c1", { plugin, conf: { type: plugin } })).code).toBe(7);
    await world.del("c1", { plugin, conf: { type: plugin } });
  });

  // None of these interfaces exists: an allowed one is refused with another text, and no device is made.
  const allow = (settings: object) => world.agent.write("conf.yaml", vendorConf({ ifacer: settings }));
  const NIC = 'Interface "nic1" of "interfaces" does not exist on this node';
  const NOT_LISTED = (what: string, key: string) =>
    `Network definitions may not use ${what} the cluster's nodes: "ifacer.${key}" of vendor-conf does not list it`;
  it("ifacer uses the interfaces and VLAN ids that the administrator allows, as soon as he does", async () => {
    await allow({ interfaces: ["nic1", "nic2", "bond1"], vlanIDs: [5, "100-199"] });
    const rows: [conf: object, text: string][] = [
      [{ interfaces: ["nic1"] }, NIC],
      [{ interfaces: ["nic1"], vlanID: 5 }, NIC],
      [{ interfaces: ["nic1"], vlanID: 100 }, NIC],
      [{ interfaces: ["nic1"], vlanID: 199 }, NIC],
      [{ interfaces: ["nic1", "nic2"], bond: { name: "bond1" } }, NIC],
      [{ interfaces: ["nic3"] }, NOT_LISTED('interface "nic3" of', "interfaces")],
      [{ interfaces: ["nic1", "nic3"], bond: { name: "bond1" } }, NOT_LISTED('interface "nic3" of', "interfaces")],
      [
        { interfaces: ["nic1"], bond: { name: "bond0" }, takeOver: true },
        NOT_LISTED('interface "bond0" of', "interfaces"),
      ],
      [{ interfaces: ["nic1"], vlanID: 99 }, NOT_LISTED("VLAN ID 99 on", "vlanIDs")],
      [{ interfaces: ["nic1"], vlanID: 200 }, NOT_LISTED("VLAN ID 200 on", "vlanIDs")],
    ];
    for (const [conf, text] of rows) {
      const refusal = await world.refused("ADD", "c1", { plugin: "ifacer", conf: { type: "ifacer", ...conf } });
      expect(refusal, JSON.stringify(conf)).toMatchObject({ code: 106, msg: expect.stringContaining(text) });
    }
    await allow({});
    const conf = { type: "ifacer", interfaces: ["nic3"], vlanID: 99 };
    const refusal = await world.refused("ADD", "c1", { plugin: "ifacer", conf });
    expect(refusal.msg).toContain('Interface "nic3" of "interfaces" does not exist on this node');
  });
});
