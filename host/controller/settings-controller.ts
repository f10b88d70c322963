/** Sends an Event on the ConfigMap `vendor-conf` when it is unusable: kubectl reported only "configured". */
import * as z from "zod";
import { describeObject } from "../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath } from "../kubernetes/paths.ts";
import { messageOf } from "../lib/describe.ts";
import { decodeVendorConfMap } from "../resources/vendor-conf-map.ts";
import { followObjects } from "./follow-objects.ts";
import type { StartController } from "./types.ts";

const identity = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });

export const startSettings: StartController = (deps) => {
  const { caches, events } = deps;
  return followObjects(deps, () => {}, {
    name: "vendor-conf for its Events",
    path: collectionPath(CONFIG_MAPS, caches.configNamespace),
    fieldSelector: "metadata.name=vendor-conf",
    // Keeps nothing: caches.vendorConf has the settings.
    decode: (object) => {
      try {
        decodeVendorConfMap(object, describeObject(object), [...caches.vendorConf.items.values()][0]);
      } catch (error) {
        events.emit({
          regarding: { kind: "ConfigMap", apiVersion: "v1", ...identity.parse(object.metadata) },
          ...{ reason: "InvalidSettings", type: "Warning", action: "Check" },
          note: `${messageOf(error)}. The last valid settings stay in force`,
        });
      }
      return undefined;
    },
  });
};
