/** Addresses for Services of the type LoadBalancer. */
import type { Extension } from "../../host/extension.ts";

export default {
  readChartValues: async () => (await import("./chart-values.ts")).CHART_VALUES,
  addControllerOptions: async (program) => {
    const { parseName } = await import("../../host/bin/option-values.ts");
    const description = "namespace of MetalLB, where it is told which addresses of Services to announce";
    program.option("--metallb-namespace <name>", description, parseName);
  },
  openControllers: async ({ metallbNamespace }: { readonly metallbNamespace?: string }) => {
    const { startLoadBalancers } = await import("./load-balancers-controller.ts");
    return { controllers: { loadBalancers: startLoadBalancers(metallbNamespace) } };
  },
} satisfies Extension;
