/** Endpoints of Services that name a second network. */
import type { Extension } from "../../host/extension.ts";

export default {
  openControllers: async () => ({
    controllers: { services: (await import("./services-controller.ts")).startServices },
  }),
} satisfies Extension;
