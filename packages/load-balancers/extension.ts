/** Addresses for Services of the type LoadBalancer. */
import type { Extension } from "../../host/extension.ts";

export default {
  openControllers: async () => {
    const { startLoadBalancers } = await import("./load-balancers-controller.ts");
    return { controllers: { loadBalancers: startLoadBalancers }, problem: undefined, close: async () => {} };
  },
} satisfies Extension;
