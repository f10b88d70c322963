/** What a pod of the walks wants for a NIC, and the demand that selection would make of it. */
import type { NicDemand } from "../../../host/ipam/model.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";

export interface NicRequest {
  readonly ifName: string;
  /** Candidate pools by family, by name. */
  readonly pools: readonly (readonly string[])[];
}

/** Like selection: a pool that is gone or disabled is a refusal, and each family is one list of candidates. */
export function demandOf({ ifName, pools }: NicRequest, known: ReadonlyMap<string, IpPool>): NicDemand {
  const families = pools.flatMap((names) => {
    const candidates = names.map((name) => {
      const pool = known.get(name);
      return pool === undefined ? { name, refusal: "does not exist" } : { name, pool };
    });
    const family = candidates.find(({ pool }) => pool !== undefined)?.pool?.spec.family ?? 4;
    return [{ family, candidates: candidates.filter(({ pool }) => pool === undefined || pool.spec.family === family) }];
  });
  const distinct = families.filter(
    ({ family }, index) => families.findIndex((each) => each.family === family) === index,
  );
  return { ifName, rule: "the test", cleanGateway: false, families: distinct };
}
