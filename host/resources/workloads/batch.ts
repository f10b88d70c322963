/** The fields of Job and CronJob (batch/v1) that size the pools generated for them. */
import * as z from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { orAbsent } from "../../lib/schema.ts";
import { optionalCount, podTemplate, wanted, workloadMetadata } from "./template.ts";

const jobSpec = z
  .object({
    template: podTemplate,
    parallelism: wanted,
    completions: optionalCount,
    suspend: orAbsent(z.boolean()),
  })
  .transform(({ template, parallelism, completions, suspend = false }) => ({
    template,
    /** Pods at a time: at most the number of completions. */
    parallelism: Math.min(parallelism, completions ?? parallelism),
    suspended: suspend,
  }));

const job = z.object({
  metadata: workloadMetadata,
  spec: jobSpec,
  status: orAbsent(z.object({ conditions: orAbsent(z.array(z.object({ type: z.string(), status: z.string() }))) })),
});

/** Decodes a Job. Throws ConfigError. */
export function decodeJob(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(job, value, source);
  const isFinished = (status?.conditions ?? []).some(({ type, status }) => FINAL.has(type) && status === "True");
  return { metadata, ...spec, isFinished };
}

const FINAL: ReadonlySet<string> = new Set(["Complete", "Failed"]);

const cronJob = z.object({
  metadata: workloadMetadata,
  spec: z.object({ suspend: orAbsent(z.boolean()), jobTemplate: z.object({ spec: jobSpec }) }),
  status: orAbsent(z.object({ active: orAbsent(z.array(z.unknown())) })),
});

/** Decodes a CronJob. `active` is the number of its running Jobs. Throws ConfigError. */
export function decodeCronJob(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(cronJob, value, source);
  const { template, parallelism } = spec.jobTemplate.spec;
  return { metadata, template, parallelism, suspended: spec.suspend ?? false, active: status?.active?.length ?? 0 };
}
