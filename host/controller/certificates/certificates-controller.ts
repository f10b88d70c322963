/**
 * Keeps the certificates of the servers of metrics and of the address map in Secrets, and renews them before they
 * expire. The chart makes the Secrets, empty: with a right to make some the controller could get any account's token.
 */
import * as z from "zod";
import { type ObjectName, objectPath, SECRETS } from "../../kubernetes/paths.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { issueCertificate, isUsable, makeAuthority, type Pair, type Validity } from "./certificate.ts";

/** Default time for which a certificate is valid: days. It is renewed after two thirds. */
export const CERTIFICATE_LIFETIME_DAYS = 90;

/** Time for which the authority's certificate is valid: milliseconds. It is renewed with the same key. */
const AUTHORITY_LIFETIME_MS = 3_650 * 86_400_000;

/** Time for which a certificate is valid before it was made, for clocks that are late: milliseconds. */
const CLOCK_SKEW_MS = 300_000;

/** Longest interval between reads of the Secrets, which others may delete or empty: milliseconds. */
const CHECK_MS = 5_000;

/** Shortest time between two passes: milliseconds. */
const REST_MS = 200;

export interface CertificateSettings {
  readonly namespace: string;
  /** The Secret with the authority's key, which no program mounts. */
  readonly authority: string;
  /** The Secret of a server's certificate, and the names in it. */
  readonly servers: readonly { readonly secret: string; readonly names: readonly string[] }[];
  readonly lifetimeMs: number;
}

const secretObject = z.object({
  metadata: z.object({ uid: z.string(), resourceVersion: z.string() }),
  data: z.record(z.string(), z.base64()).nullish(),
});

export function startCertificates(settings: CertificateSettings): StartController {
  return (deps) =>
    startReconciling(deps, {
      failure: "Renewing the certificates of metrics and of the address map failed",
      work: () => renew(deps, settings),
      restMs: () => REST_MS,
    });
}

/** Returns the time until the next check: milliseconds. */
async function renew(deps: ControllerDeps, settings: CertificateSettings): Promise<number> {
  const { namespace, authority, servers, lifetimeMs } = settings;
  const now = deps.clock.now();
  const held = await readSecret(deps, { namespace, name: authority });
  const isCurrent = isUsable(held.pair, { now, leftMs: AUTHORITY_LIFETIME_MS / 3 });
  const span = validity(now, AUTHORITY_LIFETIME_MS);
  const issuer = isCurrent ? held.pair : await makeAuthority(`${authority} in ${namespace}`, span, held.pair.key);
  if (!isCurrent) await writeSecret(deps, held, issuer);
  // One that is away or cannot be written keeps no other from its own.
  await inParallel(servers, servers.length, async ({ secret, names }) => {
    const found = await readSecret(deps, { namespace, name: secret });
    const wanted = { authority: issuer, names, now, leftMs: lifetimeMs / 3 };
    if (found.authority === issuer.cert && isUsable(found.pair, wanted)) return;
    await writeSecret(deps, found, await issueCertificate(issuer, names, validity(now, lifetimeMs)), issuer.cert);
    deps.log.info({ secret, names }, "Renewed a certificate");
  });
  return Math.min(CHECK_MS, lifetimeMs / 10);
}

interface HeldSecret {
  readonly path: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Empty texts where there is none yet. */
  readonly pair: Pair;
  readonly authority: string;
}

/** Rejects if there is no such Secret. */
async function readSecret({ api, leading }: ControllerDeps, name: ObjectName): Promise<HeldSecret> {
  const path = objectPath(SECRETS, name);
  const { metadata, data } = secretObject.parse(await api.call({ method: "GET", path, signal: leading }));
  const text = (key: string) => Buffer.from(data?.[key] ?? "", "base64").toString();
  return { path, ...metadata, pair: { cert: text("tls.crt"), key: text("tls.key") }, authority: text("ca.crt") };
}

async function writeSecret(deps: ControllerDeps, held: HeldSecret, pair: Pair, authority?: string): Promise<void> {
  const texts = { "tls.crt": pair.cert, "tls.key": pair.key, ...(authority !== undefined && { "ca.crt": authority }) };
  const data = Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
  );
  const written = await patchIfSame(deps.api, { ...held, body: { data }, signal: deps.leading });
  if (written === undefined) throw new Error(`${held.path} has changed meanwhile`);
}

function validity(now: Date, lifetimeMs: number): Validity {
  return { from: new Date(now.getTime() - CLOCK_SKEW_MS), to: new Date(now.getTime() + lifetimeMs) };
}
