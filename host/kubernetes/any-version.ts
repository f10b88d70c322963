/** Kinds of other projects, which may be served in another version than was known when Berth was released. */
import * as z from "zod";
import { callIfThere, type KubeApi, type KubeCall } from "./kube-api.ts";
import type { Resource } from "./paths.ts";

const groupSchema = z.object({ versions: z.array(z.object({ groupVersion: z.string() })) });
const versionSchema = z.object({ resources: z.array(z.object({ name: z.string() })) });

/** Reads the kind in the version that the server has. */
export function inAnyVersion(api: KubeApi, { apiVersion, plural }: Resource): KubeApi {
  let served = apiVersion;
  const at = <T extends { readonly path: string }>(request: T): T => {
    return { ...request, path: request.path.replace(`/${apiVersion}/`, `/${served}/`) };
  };
  const findServed = async (call: KubeCall): Promise<string | undefined> => {
    const read = (name = "") => callIfThere(api, { ...call, path: `/apis/${name}`, query: {} });
    const { versions = [] } = groupSchema.safeParse(await read(apiVersion.split("/")[0])).data ?? {};
    for (const { groupVersion } of versions) {
      const { resources = [] } = versionSchema.safeParse(await read(groupVersion)).data ?? {};
      if (resources.some(({ name }) => name === plural)) return groupVersion;
    }
    return undefined;
  };
  return {
    call: async (call) => {
      const found = await callIfThere(api, at(call));
      if (found !== undefined) return found;
      served = (await findServed(call)) ?? apiVersion;
      return api.call(at(call));
    },
    watch: (watch) => api.watch(at(watch)),
  };
}
