/**
 * The kernel's modules: loaded when they are needed, explained when they are not there. In the guest's own namespace,
 * where bond0 comes.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { toCniError } from "../../host/agent/server/answer.ts";
import { type OpenNamespace, openNamespace } from "../../host/kernel/open-namespace.ts";
import { type IfacerPlace, placeIn } from "./ifacer-node.ts";

/** Path of the setting for the kernel's module loader. */
const LOADER = "/proc/sys/kernel/modprobe";

let host: OpenNamespace;
let place: IfacerPlace;
let loader: string;

const run = (line: string) => execFileSync("sh", ["-ec", line]).toString();
const options = (name: string) => readFileSync(`/sys/class/net/bond0/bonding/${name}`, "utf8").trim();

beforeAll(() => {
  loader = readFileSync(LOADER, "utf8");
  host = openNamespace("/proc/self/ns/net");
  place = placeIn(host);
  run("ip link add im0 type dummy; ip link add im1 type dummy");
});

afterEach(() => {
  writeFileSync(LOADER, loader);
  run("rmmod bonding 8021q || true; /run/modprobe 8021q; /run/modprobe bonding max_bonds=0");
});

afterAll(() => {
  run("ip link del im0; ip link del im1");
  host[Symbol.dispose]();
});

it.each<[module: string, conf: object]>([
  ["8021q", { interfaces: ["im0"], vlanID: 5 }],
  ["bonding", { interfaces: ["im0"], bond: {} }],
])("without %s the error says how to get it", async (module, conf) => {
  writeFileSync(LOADER, "/bin/false");
  run(`rmmod ${module}`);
  const error = await place.add(conf).then(() => expect.unreachable(), toCniError);
  expect(error).toMatchObject({ code: 108, message: expect.stringContaining(`run "modprobe ${module}" on the node`) });
});

it("bond0, which comes when the module is loaded, becomes the bond that is asked for", async () => {
  run("rmmod bonding");
  // Distributions may say that the module makes no bond by itself; without their settings it does.
  writeFileSync("/run/plain-modprobe", '#!/bin/sh\nexec modprobe -C /dev/null -d /run/modules "$@"\n', { mode: 0o755 });
  writeFileSync(LOADER, "/run/plain-modprobe");
  const conf = {
    interfaces: ["im0", "im1"],
    bond: { name: "bond0", mode: "active-backup", options: "miimon=100;primary=im1" },
  };
  await place.add(conf);
  expect(["mode", "miimon", "slaves", "primary"].map(options)).toEqual(["active-backup 1", "100", "im0 im1", "im1"]);
  await place.check(conf);
  const done = place.log.find(({ msg }) => msg === "Device set up");
  expect(done.operations[0]).toBe("host: ip link set bond0 type bond mode 1");
});
