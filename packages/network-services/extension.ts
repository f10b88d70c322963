/** Services of networks that kube-proxy's pods are not on. */
import type { Extension } from "../../host/extension.ts";

export default {
  openControllers: async () => ({
    controllers: { services: (await import("./services-controller.ts")).startServices },
  }),
} satisfies Extension;
