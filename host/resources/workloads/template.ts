/** The parts that kinds with a pod template share: metadata, the template's annotations, counts. */
import * as z from "zod";
import { orAbsent, orDefault, textMap, wholeNumber } from "../../lib/schema.ts";
import { metadata } from "../fields/metadata.ts";

const more = z.object({ generation: orAbsent(wholeNumber(0)), creationTimestamp: orAbsent(z.string()) });

/** Metadata with a UID, which every object of the API server has. */
export const workloadMetadata = z
  .intersection(metadata, more)
  .check(({ value, issues }) => {
    if (value.uid === undefined || value.uid === "")
      issues.push({ code: "custom", path: ["uid"], message: "text", input: value.uid });
  })
  .transform(({ namespace = "default", uid = "", generation = 0, creationTimestamp = "", ...rest }) => {
    const { name, annotations, ownerReferences } = rest;
    return { namespace, name, uid, generation, created: creationTimestamp, annotations, ownerReferences };
  });

/** `generation` is 0 and `created` "" if the object has none. */
export type WorkloadMetadata = Readonly<z.output<typeof workloadMetadata>>;

export const podTemplate = orAbsent(
  z.object({
    metadata: orAbsent(z.object({ annotations: orAbsent(textMap()) })),
    spec: orAbsent(z.object({ hostNetwork: orAbsent(z.boolean()) })),
  }),
).transform((template) => ({
  annotations: template?.metadata?.annotations ?? {},
  hostNetwork: template?.spec?.hostNetwork ?? false,
}));

export type PodTemplate = Readonly<z.output<typeof podTemplate>>;

/** Kubernetes counts pods in signed 32 bits. */
const count = wholeNumber(0, 2_147_483_647);

/** A wanted number; 1 if unset, as in the API server. */
export const wanted = orDefault(count, 1);

export const optionalCount = orAbsent(count);

/** A number in a status, which is omitted while it is 0. */
export const counted = orDefault(count, 0);

/** The observed generation; 0 if none yet. */
export const observed = orDefault(wholeNumber(0), 0);

/** Decodes `maxSurge`, a number of pods or `"25%"`, to a function from the number of pods to the surge in pods. */
export const surge = z.union(
  [
    count.transform((number) => (): number => number),
    z
      .string()
      .regex(/^[0-9]{1,9}%$/)
      // Rounded up, as Kubernetes does.
      .transform((text) => {
        const percent = Number(text.slice(0, -1));
        return (of: number): number => Math.ceil((of * percent) / 100);
      }),
  ],
  { error: 'a number of pods, or a share of them such as "25%"' },
);
