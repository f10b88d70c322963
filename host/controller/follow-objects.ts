import type { Change } from "../kubernetes/mirror.ts";
import { keyOf } from "../kubernetes/object-key.ts";
import { Reflector, type ReflectorOptions } from "../kubernetes/reflector.ts";
import type { ControllerDeps } from "./types.ts";

export type Followed<T> = Omit<ReflectorOptions<T>, "api" | "log" | "random" | "keyOf" | "onChange">;

/** Starts to watch at once. `onChange` is also called, without a change, when the first list is complete. */
export function followObjects<T>(
  { api, log, random }: Pick<ControllerDeps, "api" | "log" | "random">,
  onChange: (change?: Change<T>) => void,
  own: Followed<T>,
): Reflector<T> {
  const reflector = new Reflector<T>({ api, log, random, keyOf, onChange, ...own });
  reflector.onSynced(onChange);
  reflector.start();
  return reflector;
}
