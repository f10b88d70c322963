import { describe, expect, it, onTestFinished } from "vitest";
import {
  EVENT_GAP_MS,
  EVENT_MEMORY_MS,
  EVENT_REPEAT_MS,
  EventSender,
  MAX_NOTES,
  MAX_WAITING_EVENTS,
} from "../../../host/kubernetes/events.ts";
import { openLog } from "../../../host/lib/log.ts";
import { until } from "../../world/recorded-log.ts";
import { type StubAnswer, sendJson, sendStatus, startStub } from "./stub-server.ts";

async function open(answer: StubAnswer) {
  const stub = await startStub(answer);
  const clock = { nowMs: 0 };
  const log = openLog("test", "silent");
  const events = new EventSender({
    api: stub.client,
    component: "berth-agent",
    node: "n1",
    log,
    nowMs: () => clock.nowMs,
  });
  onTestFinished(() => events.close());
  return { stub, events, clock };
}

const created: StubAnswer = (response) => sendJson(response, 201, {});

/** As the server: a name that is taken is refused. */
function createdOnce(): StubAnswer {
  const names = new Set<string>();
  return (response, { method, body }) => {
    const { metadata } = JSON.parse(body) as { metadata?: { name: string } };
    const isTaken = method === "POST" && metadata !== undefined && names.has(metadata.name);
    if (metadata !== undefined) names.add(metadata.name);
    if (isTaken) sendStatus(response, 409, "AlreadyExists");
    else sendJson(response, 200, {});
  };
}
const event = (note: string) => ({
  regarding: { kind: "Pod", apiVersion: "v1", namespace: "shop", name: "web-0", uid: "u1" },
  reason: "AddressConflict",
  note,
  type: "Warning" as const,
  action: "Allocate",
});

const numbered = (index: number) => ({ ...event("one"), regarding: { ...event("").regarding, name: `web-${index}` } });

describe("events", () => {
  it("are sent with all that the server wants", async () => {
    const { stub, events } = await open(created);
    events.emit(event("one"));
    await until(() => stub.requests.length === 1, "it is sent");
    const [request] = stub.requests;
    expect(request?.url).toBe("/apis/events.k8s.io/v1/namespaces/shop/events");
    expect(JSON.parse(request?.body ?? "")).toEqual({
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { namespace: "shop", name: expect.stringMatching(/^web-0\.[0-9a-f]{16}$/) },
      ...event("one"),
      eventTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      reportingController: "berth-agent",
      reportingInstance: "n1",
    });
  });

  it("that repeat are one object, whose count is written at most every five minutes", async () => {
    const { stub, events, clock } = await open(createdOnce());
    events.emit(event("one"));
    events.emit(event("one"));
    clock.nowMs = EVENT_REPEAT_MS - 1;
    events.emit(event("one"));
    events.emit(event("two"));
    await until(() => stub.requests.length === 2, "two are created");
    clock.nowMs = EVENT_REPEAT_MS;
    events.emit(event("one"));
    await until(() => stub.requests.length === 4, "one is counted");
    const [one, two, , again] = stub.requests.map(({ body }) => JSON.parse(body));
    expect([one.note, two.note]).toEqual(["one", "two"]);
    expect(again).toEqual({ series: { count: 4, lastObservedTime: expect.stringMatching(/\.\d{6}Z$/) } });
    expect(stub.requests[3]).toMatchObject({ method: "PATCH" });
    expect(stub.requests[3]?.url).toBe(`/apis/events.k8s.io/v1/namespaces/shop/events/${one.metadata.name}`);
  });

  it("that an earlier process has sent are counted, and created anew when the server has forgotten them", async () => {
    const statuses = [409, 200, 201];
    const { stub, events, clock } = await open((response) => {
      const status = statuses.shift() ?? 500;
      sendStatus(response, status, status === 409 ? "AlreadyExists" : "NotFound");
    });
    events.emit(event("one"));
    await until(() => stub.requests.length === 2, "it is counted");
    clock.nowMs = EVENT_REPEAT_MS;
    await until(() => stub.client.stats.calling === 0, "it is answered");
    events.emit(event("one"));
    await until(() => stub.requests.length === 3, "it is created");
    expect(stub.requests.map(({ method }) => method)).toEqual(["POST", "PATCH", "POST"]);
    const created = stub.requests.filter(({ method }) => method === "POST");
    expect(new Set(created.map(({ body }) => JSON.parse(body).metadata.name)).size).toBe(1);
  });

  it("are few per second, and those beyond are dropped", async () => {
    const { stub, events } = await open(created);
    const startedMs = performance.now();
    for (let index = 0; index < MAX_WAITING_EVENTS + 50; index++) events.emit(numbered(index));
    // their callers do not wait until they are sent
    expect(stub.requests.length).toBeLessThan(2);
    await until(() => stub.requests.length === 4, "four are sent");
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(3 * EVENT_GAP_MS - 20);
  });

  it("that fail are dropped silently, and may be sent again", async () => {
    const { stub, events } = await open((response) => sendStatus(response, 403, "Forbidden"));
    events.emit(event("one"));
    await until(() => stub.requests.length === 1 && stub.client.stats.calling === 0, "it was refused");
    await new Promise((resolve) => setTimeout(resolve, 20));
    events.emit(event("one"));
    await until(() => stub.requests.length === 2, "it is tried again");
  });

  it("that differ in their text only are few for one object and reason", async () => {
    const { stub, events, clock } = await open(createdOnce());
    for (let index = 0; index < 50; index++) events.emit(event(`${index} of 50`));
    events.emit({ ...event("other"), reason: "PoolExhausted" });
    await until(() => stub.requests.some(({ body }) => JSON.parse(body).reason === "PoolExhausted"), "the other");
    expect(stub.requests.map(({ body }) => JSON.parse(body).note)).toEqual([
      ...Array.from({ length: MAX_NOTES }, (_, index) => `${index} of 50`),
      "other",
    ]);
    clock.nowMs = EVENT_REPEAT_MS;
    events.emit(event("50 of 50"));
    await until(() => stub.requests.length === MAX_NOTES + 3, "it is counted");
    expect(JSON.parse(stub.requests.at(-1)?.body ?? "")).toMatchObject({ series: { count: 48 } });
    clock.nowMs += EVENT_MEMORY_MS;
    events.emit(event("later"));
    await until(() => stub.requests.length === MAX_NOTES + 4, "it is told");
    expect(JSON.parse(stub.requests.at(-1)?.body ?? "")).toMatchObject({ note: "later" });
  });

  it("that speak of a hostile name stay where they belong", async () => {
    const { stub, events } = await open(created);
    const regarding = { ...event("").regarding, namespace: "../../../api/v1/nodes?x=", name: "UP" };
    events.emit({ ...event("one"), regarding });
    await until(() => stub.requests.length === 1, "it is sent");
    const path = "/apis/events.k8s.io/v1/namespaces/..%2F..%2F..%2Fapi%2Fv1%2Fnodes%3Fx%3D/events";
    expect(stub.requests[0]?.url).toBe(path);
  });
});
