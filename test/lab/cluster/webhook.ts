/** An admission webhook of others on loopback: it keeps each write for a while, or changes what is written. */
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { makeCertificate } from "../../unit/kubernetes/certificate.ts";
import type { KubeClient } from "../kube-client.ts";
import { until } from "../waiting.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";

export interface WebhookTerms {
  readonly kind: "Validating" | "Mutating";
  readonly failurePolicy: "Fail" | "Ignore";
  readonly timeoutSeconds: number;
  readonly operations: readonly string[];
  /** Whose writes it is asked about, in CEL. Default: all. */
  readonly condition?: string;
  /** Kinds that it is asked about. */
  readonly rules: readonly { readonly apiGroups: readonly string[]; readonly resources: readonly string[] }[];
}

export type LabWebhook = Awaited<ReturnType<typeof openWebhook>>;

export async function openWebhook(client: KubeClient) {
  const certificate = makeCertificate("webhook");
  let configured: string | undefined;
  let asked = 0;
  const webhook = {
    /** How long it takes to answer: milliseconds; undefined: it never does. */
    keepMs: 0 as number | undefined,
    /** Resolves when the API server asks it, which `probe`, a write, makes sure of. */
    install: async (
      { kind, operations, rules, condition = "true", ...terms }: WebhookTerms,
      probe: () => Promise<unknown>,
    ): Promise<void> => {
      const collection = `${ADMISSION}/${kind.toLowerCase()}webhookconfigurations`;
      const { port } = server.address() as AddressInfo;
      const url = `https://127.0.0.1:${port}/${kind}`;
      await client.create(collection, {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: `${kind}WebhookConfiguration`,
        metadata: { name: "slow" },
        webhooks: [
          {
            ...{ name: "slow.example.org", sideEffects: "None", admissionReviewVersions: ["v1"], ...terms },
            clientConfig: { url, caBundle: Buffer.from(certificate.cert).toString("base64") },
            matchConditions: [{ name: "whose", expression: condition }],
            rules: rules.map((rule) => ({ ...rule, apiVersions: ["*"], operations })),
          },
        ],
      });
      configured = `${collection}/slow`;
      const before = asked;
      await until("the API server asks the webhook", async () => {
        probe().catch(() => {});
        await sleep(200);
        return asked > before;
      });
    },
    uninstall: async (): Promise<void> => {
      if (configured !== undefined) await client.delete(configured);
      configured = undefined;
    },
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
  const server = createServer({ ...certificate }, async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { request } = JSON.parse(Buffer.concat(chunks).toString());
    asked++;
    if (webhook.keepMs === undefined) return;
    await sleep(webhook.keepMs);
    const patch = incoming.url?.startsWith("/Mutating")
      ? { patchType: "JSONPatch", patch: patchOf(request.object, asked) }
      : {};
    const answer = { uid: request.uid, allowed: true, ...patch };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return webhook;
}

/** A label, and an annotation that is another one with each write, beside those that the object has. */
function patchOf({ metadata }: { metadata: Record<"labels" | "annotations", object | undefined> }, count: number) {
  const labels = { ...metadata.labels, "policy.example.org/team": "a" };
  const annotations = { ...metadata.annotations, "policy.example.org/seen": `${count}` };
  const operations = Object.entries({ labels, annotations }).map(([name, value]) => ({
    ...{ op: "add", path: `/metadata/${name}`, value },
  }));
  return Buffer.from(JSON.stringify(operations)).toString("base64");
}
