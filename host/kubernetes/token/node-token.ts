/** Reads the claims of a service account's token that is bound to a Node. Does not verify its signature: that is the API server's part. */
import * as z from "zod";
import { ConfigError, decodeConfig } from "../../config/config-error.ts";
import { orAbsent } from "../../lib/schema.ts";

/** Times are seconds since 1970, by the API server's clock. */
export interface NodeToken {
  readonly namespace: string;
  readonly account: string;
  readonly node: { readonly name: string; readonly uid: string };
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const named = z.looseObject({ name: z.string(), uid: z.string() });
const schema = z.looseObject({
  iat: z.number(),
  exp: z.number(),
  "kubernetes.io": z.looseObject({
    namespace: z.string(),
    serviceaccount: named,
    node: orAbsent(named),
    pod: orAbsent(named),
  }),
});

/** `source` names the token in errors, which never show it. Throws ConfigError. */
export function decodeNodeToken(text: string, source: string): NodeToken {
  const { iat, exp, "kubernetes.io": claims } = decodeConfig(schema, payloadOf(text, source), source);
  const { namespace, serviceaccount, node, pod } = claims;
  const wanted = "a token that is bound to a Node";
  if (pod !== undefined)
    throw new ConfigError(source, [{ path: "", got: "a token of a pod, which its kubelet renews", wanted }]);
  if (node === undefined) throw new ConfigError(source, [{ path: "", got: "a token that names no node", wanted }]);
  return {
    namespace,
    account: serviceaccount.name,
    node: { name: node.name, uid: node.uid },
    issuedAt: iat,
    expiresAt: exp,
  };
}

/** RFC 7519 §7.2: the second of three parts. */
function payloadOf(text: string, source: string): unknown {
  const parts = text.trim().split(".");
  try {
    if (parts.length === 3) return JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString());
  } catch {
    // The error of JSON.parse would show the token.
  }
  throw new ConfigError(source, [{ path: "", got: "a text that is not a JSON Web Token", wanted: "a token" }]);
}
