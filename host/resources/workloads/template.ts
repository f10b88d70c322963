/**
 * What the kinds that make pods have in common: their metadata, and the pod template, of which Berth reads the annotations.
 */
import { z } from "zod";
import { orAbsent, textMap, wholeNumber } from "../../lib/schema.ts";
import { metadata } from "../fields/metadata.ts";

const more = z.object({ generation: orAbsent(wholeNumber(0)), creationTimestamp: orAbsent(z.string()) });

/** Of an object that the API server has: with a UID. */
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

/** `generation` is 0 and `created` "" when the object does not say. */
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

/** Numbers of pods are 32 bits with a sign. */
const count = wholeNumber(0, 2_147_483_647);

/** A wanted number, which the API server fills in: it is 1 where nothing else is said. */
export const wanted = orAbsent(count).transform((number) => number ?? 1);

export const optionalCount = orAbsent(count);

/** A number in a status, which is left out while it is 0. */
export const counted = orAbsent(count).transform((number) => number ?? 0);

/** A generation that was observed; 0: none yet. */
export const observed = orAbsent(wholeNumber(0)).transform((generation) => generation ?? 0);

/** `maxSurge`, a number of pods or `"25%"`: how many that is. */
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
