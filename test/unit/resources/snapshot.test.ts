import { expect, it } from "vitest";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { assembleSnapshot } from "../../../host/resources/snapshot.ts";

/** A pool's manifest, with a /24 of its own. */
function manifest(name: string, third: number): object {
  const spec = { subnet: `10.0.${third}.0/24`, ips: [`10.0.${third}.2-10.0.${third}.9`] };
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec };
}

it("says of each pool which others give out its addresses, too", () => {
  const all = [manifest("a", 0), manifest("b", 0), manifest("c", 1)];
  const resources = all.flatMap((each) => decodeManifests(JSON.stringify(each), "a"));
  const { problems } = assembleSnapshot([{ source: "a", resources }]);
  const says = (name: string, other: string) =>
    `IPPool "${name}": 8 addresses, from 10.0.0.2 on, are also in IPPools "${other}"; each address is still given out once`;
  expect(problems).toEqual([says("a", "b"), says("b", "a")]);
});

it("uses the Coordinator named default, and reports the others", () => {
  const named = (name: string) =>
    `{apiVersion: ipam.vendor.io/v1, kind: Coordinator, metadata: {name: ${name}}, spec: {}}`;
  const assemble = (...names: string[]) =>
    assembleSnapshot([{ source: "a.yaml", resources: decodeManifests(names.map(named).join("\n---\n"), "a.yaml") }]);
  expect(assemble("default")).toMatchObject({ coordinator: { name: "default" }, problems: [] });
  const problems = ["lan", "other"].map(
    (name) =>
      `Coordinator "${name}" of a.yaml is ignored: only the one named "default" is used. Move its settings there and delete it`,
  );
  expect(assemble("lan", "default", "other")).toMatchObject({ coordinator: { name: "default" }, problems });
  expect(assemble("lan")).toMatchObject({ coordinator: undefined });
});
