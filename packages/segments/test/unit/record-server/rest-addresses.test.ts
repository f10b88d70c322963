import { expect, it } from "vitest";
import { RecordServerError } from "../../../record-server/http-client.ts";
import { NETBOX } from "../../../record-server/netbox-addresses.ts";
import { RestAddresses } from "../../../record-server/rest-addresses.ts";
import { AddressApi } from "../../fakes/address-api.ts";
import { addressSuite } from "../../world/address-suite.ts";

for (const product of ["nautobot", "netbox"] as const)
  addressSuite(`addresses of the fake of ${product}`, () => AddressApi.start(product));

const entry = { space: "", prefixLength: 24, dnsName: "", description: "" };
const ENTRIES = ["10.6.0.1", "10.6.0.2"].map((ip, at) => ({ ...entry, ip, id: String(at + 7) }));
const NAMED = [undefined, "dns_name: Only letters."];
const wrong = { dns_name: ["Only letters."] };

it.each<[what: string, json: unknown, created: unknown, changed?: unknown]>([
  ["names it by its position", { errors: [{ index: 1, errors: wrong }] }, NAMED, NAMED],
  ["names it by its id", { errors: [{ id: 8, errors: wrong }] }, undefined, NAMED],
  ["names the fault alone", wrong, undefined],
])("a call of two entries that NetBox refuses with an answer that %s", async (_, json, created, changed) => {
  const request = async ({ method }: { method: string }) => {
    if (method !== "GET") throw new RecordServerError("refused", { status: 400, json });
    return { status: 200, json: { results: [{ id: 1, slug: "berth" }] } };
  };
  const client = { request, requests: 0, problem: undefined };
  const server = new RestAddresses({ client, dialect: NETBOX, cluster: "c", tag: "berth", spaces: [""] });
  const { signal } = new AbortController();
  await server.prepare(signal);
  await expect(server.create(ENTRIES, signal)).rejects.toMatchObject({ reasons: created });
  await expect(server.update(ENTRIES, signal)).rejects.toMatchObject({ reasons: changed });
});
