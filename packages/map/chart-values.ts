/** The chart's values for the address map. */
import * as z from "zod";
import { section } from "../../scripts/chart/section.ts";

export const CHART_VALUES = {
  map: section({
    enabled: z.boolean().default(false).meta({
      description:
        "Serve the [address map](map.md) on the controllers' loopback, for `kubectl port-forward`. Turns on what `metrics.enabled` does, because agents answer the map's questions on that port.",
    }),
    port: z.int().min(1).max(65535).default(9476).meta({ description: "Port of the map." }),
    service: z.boolean().default(false).meta({
      description:
        "Serve it to other machines instead: a Service, over TLS with the controller's certificate, to users by their tokens.",
    }),
    hostNames: z.array(z.string()).default([]).meta({
      title: "list of names",
      description: "Further DNS names by which browsers reach the Service, for its certificate.",
    }),
  }),
};
