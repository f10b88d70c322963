/** The unit that install.sh installs, under a real systemd in namespaces: ordering, restarts, hardening, uninstall. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { bootHost, type Host } from "../../scripts/lab/systemd-host.ts";

const UNIT = "berth-agent.service";
const ADDRESS = /"192\.0\.2\.\d+\/24"/;

let host: Host;
const run = (...argv: readonly string[]) => host.require(...argv);
const show = (unit: string, property: string) => host.show(unit, property);
const add = (name: string) => run("sh", "/srv/add.sh", name);

beforeAll(async () => {
  host = await bootHost();
});

afterAll(() => host?.stop());

it("the runtime starts when the agent serves, and its first pod gets an address", async () => {
  expect(await show("containerd.service", "Result")).toBe("success");
  const ready = Number(await show(UNIT, "ActiveEnterTimestampMonotonic"));
  expect(Number(await show("containerd.service", "ExecMainStartTimestampMonotonic"))).toBeGreaterThanOrEqual(ready);
  expect(await run("berthctl", "allocations")).toContain("shop/first");
});

it("after kill -9 the agent is restarted, and an ADD meanwhile waits for it", async () => {
  const pid = await show(UNIT, "MainPID");
  await run("kill", "-9", pid);
  expect(await add("killed")).toMatch(ADDRESS);
  expect(await show(UNIT, "NRestarts")).toBe("1");
  expect(await show(UNIT, "MainPID")).not.toBe(pid);
});

it("the agent survives daemon-reexec", async () => {
  const pid = await show(UNIT, "MainPID");
  await run("systemctl", "daemon-reexec");
  await expect.poll(() => show(UNIT, "ActiveState").catch(String), { timeout: 20_000 }).toBe("active");
  expect(await show(UNIT, "MainPID")).toBe(pid);
  expect(await add("reexecuted")).toMatch(ADDRESS);
});

it("an uninstall is refused with the addresses in use, and with --force leaves nothing", async () => {
  const refused = await host.run("sh", "/opt/berth/current/install.sh", "uninstall");
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("shop/first")]);
  expect(await show(UNIT, "ActiveState")).toBe("active");
  await run("sh", "/opt/berth/current/install.sh", "uninstall", "--force");
  const left = await run(
    "sh",
    "-c",
    "find / -xdev -name '*berth*' -not -path '/srv/*' -not -path '/proc/*'; ls /opt/cni/bin",
  );
  expect(left).toBe("");
});
