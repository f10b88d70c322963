/**
 * The kind RangeMember: a cluster that may lease blocks of an AddressRange, and its blocks (docs/decisions/0064). The
 * hub serves it. The specification is the administrator's; only the cluster itself writes the status, and no program
 * compares it with other clusters' blocks.
 */
import * as z from "zod";
import { decodeConfig } from "../../host/config/config-error.ts";
import { objectName } from "../../host/config/fields/names.ts";
import { cel, IMMUTABLE } from "../../host/lib/cel.ts";
import { wholeNumber } from "../../host/lib/schema.ts";
import { berthObject, decodeBerth } from "../../host/resources/fields/metadata.ts";
import { MAX_BLOCKS, uuidText } from "../../host/resources/pool-source.ts";

/** One block that a member has. */
export interface MemberBlock {
  /** The pool of that cluster that it is for. */
  readonly pool: string;
  /** UUID of the request by which it was got. */
  readonly request: string;
  /** When it was written down, by the member's clock: RFC 3339. */
  readonly since: string;
  /** The hub had lost it: another member may have got it meanwhile. */
  readonly again?: boolean | undefined;
}

/** Null: it has the block no more. */
export type BlocksChange = Readonly<Record<string, MemberBlock | null>>;

export interface MemberStatus {
  /** UID of the cluster's namespace kube-system; "" before the first write. */
  readonly cluster: string;
  /** Replaced by each of its writes. */
  readonly token: string;
  /** Number of its writes. */
  readonly writes: number;
  /** Two clusters have written in its name, or one that is older than its last write, or it was released. */
  readonly isContested: boolean;
  /** By block: `10.6.0.16/28`. */
  readonly blocks: Readonly<Record<string, MemberBlock>>;
}

export interface RangeMember {
  /** Of the object: `RANGE.MEMBER`. */
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly spec: {
    readonly range: string;
    readonly member: string;
    /** The hub's account that the cluster's controller uses: `system:serviceaccount:NAMESPACE:NAME`. */
    readonly user: string;
    readonly maxBlocks: number;
  };
  readonly status: MemberStatus;
}

/** Returns the name of the object by which the cluster is a member of the range. */
export function memberObject(range: string, member: string): string {
  return `${range}.${member}`;
}

const spec = z
  .strictObject({
    range: objectName.meta({ description: "The AddressRange. Immutable." }),
    member: objectName.meta({ description: "Name of the cluster, as people know it. Immutable." }),
    user: z.string().min(1).max(512).meta({
      description: "Account of the hub that the cluster's controller uses, as `kubectl auth whoami` prints it.",
    }),
    maxBlocks: wholeNumber(0).max(MAX_BLOCKS).meta({ description: "Most blocks that the cluster may have." }),
  })
  .meta(
    cel(
      ...["range", "member"].map((field) => ({
        ...IMMUTABLE,
        rule: `self.${field} == oldSelf.${field}`,
        fieldPath: `.${field}`,
      })),
    ),
  );

export const rangeMemberSchema = berthObject("RangeMember", spec);

/** One field to the API server, which otherwise records the writer of each entry: half of the object. */
const ATOMIC = { "x-kubernetes-map-type": "atomic" };

const block = z.object({
  pool: z.string().max(253).meta({ description: "The cluster's pool that it is for." }),
  request: uuidText.meta({ description: "The request by which the cluster got it." }),
  since: z.string().max(32).meta({ description: "When it was written down, by the cluster's clock: RFC 3339." }),
  again: z.boolean().optional().meta({
    description: "Written again after the hub went back in time: another cluster may have got it meanwhile.",
  }),
});

export const rangeMemberStatus = z.object({
  cluster: uuidText.meta({ description: "UID of the namespace by which the cluster is known." }),
  token: uuidText.meta({ description: "Replaced by each of the cluster's writes." }),
  writes: z.int().min(0).meta({ description: "Number of the cluster's writes." }),
  contested: z.boolean().optional().meta({
    description:
      "Two clusters have written in this name, or one that is older than the last write, or the cluster was released.",
  }),
  blocks: z
    // A member may write any text as a block: it is passed over, and keeps no other member from its own.
    .record(z.string(), block)
    .default({})
    .meta({ description: "The blocks that the cluster has.", ...ATOMIC }),
});

const NO_STATUS: MemberStatus = { cluster: "", token: "", writes: 0, isContested: false, blocks: {} };

/** Decodes a RangeMember; `source` names it in the error. Throws ConfigError, also for a status: others rely on it. */
export function decodeRangeMember(value: unknown, source: string): RangeMember {
  const { metadata, spec, status } = decodeBerth(rangeMemberSchema, value, source);
  const { name, uid = "", resourceVersion = "" } = metadata;
  const found = status === undefined ? undefined : decodeConfig(rangeMemberStatus, status, source);
  if (found === undefined) return { name, uid, resourceVersion, spec, status: NO_STATUS };
  const { contested = false, ...rest } = found;
  return { name, uid, resourceVersion, spec, status: { ...rest, isContested: contested } };
}
