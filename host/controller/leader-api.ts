/**
 * The API server as the leader's parts have it: no call leaves a process whose time of leading is over, not even one whose timers are late because
 * the process stood still.
 * Effects: those of the API.
 */
import type { KubeApi } from "../kubernetes/kube-api.ts";
import type { Leading } from "../kubernetes/lease/leading.ts";

/** A call under way ends with `leading`, whether its caller thinks of the signal or not. */
export function openLeaderApi(api: KubeApi, leading: Leading): KubeApi {
  return {
    call: async (call) => {
      leading.require();
      const { signal = leading.signal } = call;
      const both = signal === leading.signal ? signal : AbortSignal.any([signal, leading.signal]);
      return api.call({ ...call, signal: both });
    },
    watch: (watch) => api.watch(watch),
    // It belongs to the process.
    close: async () => {},
  };
}
