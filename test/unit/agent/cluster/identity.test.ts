/** A pod that the watch lacks is read from the API server. */
import { expect, it } from "vitest";
import { readPod } from "../../../../host/agent/cluster/identity.ts";
import { POD_READ_PATIENCE_MS } from "../../../../host/agent/request/add-deadline.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import { openKubeClient } from "../../../../host/kubernetes/client.ts";
import type { Credentials } from "../../../../host/kubernetes/credentials.ts";
import type { Send } from "../../../../host/kubernetes/http/request.ts";
import { installTime, SimulatedTime } from "../../../simulation/simulated-time.ts";

/** An API server that takes requests and never answers. */
const silent: Send = (_, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

it("readPod rejects with CniError 11 when the API server does not answer in time", async () => {
  using _ = installTime();
  const time = new SimulatedTime(1);
  const api = openKubeClient({
    ...{ credentials: {} as Credentials, userAgent: "test", random: () => 0.5, send: silent },
  });
  let thrown: unknown;
  time.inside(time.process("agent"), () => {
    readPod(api, { namespace: "shop", name: "db-0" }).catch((error: unknown) => {
      thrown = error;
    });
  });
  // The request is out before time passes.
  await new Promise(setImmediate);
  while (thrown === undefined && (await time.step()));
  expect(thrown).toBeInstanceOf(CniError);
  expect(thrown).toMatchObject({ code: ErrorCode.TryAgainLater });
  expect(time.nowMs).toBe(POD_READ_PATIENCE_MS);
});
