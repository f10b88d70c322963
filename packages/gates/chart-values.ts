/** The chart's values for pods that wait before they are scheduled. */
import * as z from "zod";
import { section } from "../../scripts/chart/section.ts";

const description =
  "Set the [scheduling gate](scheduling-gate.md) of new pods in namespaces with the label `ipam.vendor.io/scheduling-gate: enabled`, by a MutatingAdmissionPolicy. Kubernetes 1.34 has those as v1beta1, switched off.";

export const CHART_VALUES = { schedulingGate: section({ enabled: z.boolean().default(false).meta({ description }) }) };
