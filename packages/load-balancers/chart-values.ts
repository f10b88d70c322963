/** The chart's values for the program that announces addresses of Services. */
import * as z from "zod";
import { section } from "../../scripts/chart/section.ts";

export const CHART_VALUES = {
  metallb: section({
    namespace: z.string().default("").meta({
      description:
        "Namespace of a MetalLB that [announces addresses of Services](services.md#metallb), where the controller keeps an IPAddressPool and an L2Advertisement. Empty: none.",
    }),
  }),
};
