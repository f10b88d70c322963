/**
 * Program that ifacer-service.test.ts executes in User-Mode Linux. Throws, and so ends with 1, when something is not
 * as it should be.
 */
import assert from "node:assert/strict";
import { bootHost } from "../lab/systemd-host.ts";

const UNIT = "berth-agent.service";

await using host = await bootHost({ bootMs: 400_000 });
assert.equal(await host.show(UNIT, "ProtectKernelModules"), "yes");
await host.sh(`
  for name in eth0 eth1; do ip link add $name type veth peer name $name-wire; ip link set $name-wire up; done
  mkdir -p /etc/cni/net.d
  berthctl network bonded --type macvlan --master eth0 --master eth1 --bond-name b0 --vlan 100 --no-coordinator --conflist >/etc/cni/net.d/10-bonded.conflist`);
// The agent may not load modules; the kernel does when the agent asks for a device.
await host.sh("rmmod bonding 8021q");
assert.match(await host.chain("add", "bonded", "web-0"), /"192\.0\.2\.\d+\/24"/);
assert.match(await host.require("ip", "-d", "link", "show", "b0.100"), /vlan protocol 802\.1Q id 100/);
const members = await host.require("ip", "-o", "link", "show", "master", "b0");
assert.deepEqual(members.match(/eth\d(?=@)/g), ["eth0", "eth1"]);
await host.chain("del", "bonded", "web-0");
console.log(`${await host.show(UNIT, "ActiveState")}: VLAN b0.100 on bond b0 of eth0 and eth1`);
