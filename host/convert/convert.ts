/** Converts what a peer has into a plan. Pure. */
import { convertCalico } from "./calico.ts";
import { type ConversionPlan, type Peer, PlanBuilder, type PlanOptions } from "./conversion-plan.ts";
import { convertHostLocal } from "./host-local.ts";
import type { Input } from "./input.ts";
import { convertSpiderpool } from "./spiderpool.ts";
import { convertWhereabouts } from "./whereabouts.ts";
import { usePodAddresses } from "./workloads.ts";

const CONVERTERS: Readonly<Record<Peer, (input: Input, builder: PlanBuilder) => void>> = {
  spiderpool: convertSpiderpool,
  whereabouts: convertWhereabouts,
  "host-local": convertHostLocal,
  calico: convertCalico,
};

/** Returns the plan; `read` has the findings of reading the input. */
export function convert(read: (builder: PlanBuilder) => Input, options: PlanOptions): ConversionPlan {
  const builder = new PlanBuilder(options);
  const input = read(builder);
  CONVERTERS[options.peer](input, builder);
  usePodAddresses(input.objects, builder);
  return builder.finish();
}
