import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { History, KubeObject } from "../../../host/kubernetes/kube-api.ts";
import type { Change } from "../../../host/kubernetes/mirror.ts";
import { Reflector } from "../../../host/kubernetes/reflector.ts";
import { openLog } from "../../../host/lib/log.ts";
import { ObjectBudget } from "../../../host/lib/object-budget.ts";
import { until } from "../../world/recorded-log.ts";
import { bytesLeftPerWait } from "./garbage.ts";
import { type StubAnswer, sendJson, sendStatus, startStub } from "./stub-server.ts";

const nameOf = ({ metadata }: KubeObject): string =>
  typeof metadata === "object" && metadata !== null && "name" in metadata ? String(metadata.name) : "";

const object = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });
const list = (resourceVersion: string, items: object[], next = "") => ({
  apiVersion: "v1",
  kind: "ThingList",
  metadata: { resourceVersion, continue: next },
  items,
});
const line = (type: string, value: object) => `${JSON.stringify({ type, object: value })}\n`;

interface Script {
  /** The answers to lists, in order; the last one stays. */
  readonly lists: readonly StubAnswer[];
  /** The same for watches; default: silence. */
  readonly watches?: readonly StubAnswer[];
  /** Version that the server reports when it is asked after a failure. */
  readonly version?: string;
}

/** After a failure the reflector asks for one object, to learn the server's version. */
const isVersionRequested = (url: string): boolean => /[?&]limit=1(?:&|$)/.test(url);

const silence: StubAnswer = (response) => response.writeHead(200).flushHeaders();

async function play(
  { lists, watches = [silence], version = "1000" }: Script,
  options: {
    optional?: boolean;
    /** It selects nothing. */
    isWhole?: boolean;
    onChange?: (change: Change<string>) => void;
    decode?: (object: KubeObject) => string | undefined;
    history?: History;
    budget?: ObjectBudget;
  } = {},
) {
  const next = { list: 0, watch: 0 };
  const stub = await startStub((response, request) => {
    if (isVersionRequested(request.url)) return sendJson(response, 200, list(version, []));
    const kind = request.url.includes("watch=true") ? "watch" : "list";
    const script = kind === "watch" ? watches : lists;
    script[Math.min(next[kind]++, script.length - 1)]?.(response, request);
  });
  /** `+a` for set, `-a` for gone. */
  const changes: string[] = [];
  const reflector = new Reflector<string>({
    api: {
      call: (call) => stub.client.call(call),
      watch: (watch) => stub.client.watch(watch),
      history: options.history,
    },
    name: "things",
    path: "/apis/x/v1/things",
    fieldSelector: options.isWhole ? undefined : "spec.node=n1",
    decode: options.decode ?? nameOf,
    keyOf: nameOf,
    onChange: (change) => {
      changes.push(`${change.kind === "set" ? "+" : "-"}${change.key}`);
      options.onChange?.(change);
    },
    optional: options.optional ?? false,
    budgeted: options.budget && { budget: options.budget },
    log: openLog("test", "silent"),
    random: () => 0.01,
  });
  onTestFinished(() => reflector.close());
  reflector.start();
  const queries = (isWatch: boolean) =>
    stub.requests
      .filter(({ url }) => !isVersionRequested(url))
      .map(({ url }) => new URL(url, "http://stub").searchParams)
      .filter((query) => query.has("watch") === isWatch);
  return { stub, reflector, changes, lists: () => queries(false), watches: () => queries(true) };
}

const answer =
  (value: object): StubAnswer =>
  (response) =>
    sendJson(response, 200, value);
const lines =
  (...texts: string[]): StubAnswer =>
  (response) =>
    response.end(texts.join(""));

describe("a reflector", () => {
  it("reads all pages, then watches from their version", async () => {
    const pages = [answer(list("7", [object("a", "1")], "page2")), answer(list("7", [object("b", "2")]))];
    const { reflector, changes, lists, watches } = await play({ lists: pages });
    await reflector.synced();
    await until(() => watches().length === 1, "the watch is open");
    expect(changes).toEqual(["+a", "+b"]);
    expect(lists().map((query) => [query.get("limit"), query.get("continue"), query.get("fieldSelector")])).toEqual([
      ["100", null, "spec.node=n1"],
      ["400", "page2", "spec.node=n1"],
    ]);
    const [watch] = watches();
    expect(watch?.get("resourceVersion")).toBe("7");
    expect(watch?.get("allowWatchBookmarks")).toBe("true");
    expect(watch?.get("fieldSelector")).toBe("spec.node=n1");
    expect(Number(watch?.get("timeoutSeconds"))).toBeGreaterThanOrEqual(300);
  });

  it("continues from the last version, also that of a bookmark, when the server ends the watch", async () => {
    const { changes, watches } = await play({
      lists: [answer(list("7", []))],
      watches: [lines(line("ADDED", object("a", "8"))), lines(line("BOOKMARK", object("", "12"))), silence],
    });
    await until(() => watches().length === 3, "the third watch");
    expect(watches().map((query) => query.get("resourceVersion"))).toEqual(["7", "8", "12"]);
    expect(changes).toEqual(["+a"]);
  });

  it.each([
    ["the server was off", 480_000],
    ["the clock went back", -480_000],
  ])("knows since when it has heard of the server: not from before a gap, as when %s", async (_what, jumpMs) => {
    let nowMs = 5_000_000;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => nowMs);
    onTestFinished(() => clock.mockRestore());
    let tell = (): unknown => undefined;
    const told: StubAnswer = (response) => {
      response.writeHead(200).flushHeaders();
      tell = () => response.write(line("BOOKMARK", object("", "12")));
    };
    const { reflector, watches } = await play({ lists: [answer(list("7", []))], watches: [told] });
    const bookmark = async (atMs: number) => {
      const { events } = reflector.stats;
      nowMs = atMs;
      tell();
      await until(() => reflector.stats.events > events, "the bookmark");
    };
    await until(() => watches().length === 1, "the watch");
    expect(reflector.heardSinceMs).toBe(5_000_000);
    await bookmark(5_400_000);
    nowMs = 5_879_000;
    expect(reflector.heardSinceMs).toBe(5_000_000);
    nowMs = 5_400_000 + jumpMs;
    expect(reflector.heardSinceMs).toBe(nowMs);
    await bookmark(nowMs);
    const heardMs = nowMs;
    nowMs += 60_000;
    expect(reflector.heardSinceMs).toBe(heardMs);
  });

  it("starts over when later pages have expired", async () => {
    const expired: StubAnswer = (response) => sendStatus(response, 410, "Expired");
    const pages = [answer(list("7", [object("a", "1")], "page2")), expired, answer(list("9", [object("b", "8")]))];
    const { reflector, changes, lists } = await play({ lists: pages });
    await reflector.synced();
    expect(changes).toEqual(["+a", "+b", "-a"]);
    expect(lists().map((query) => query.get("continue"))).toEqual([null, "page2", null]);
  });

  it("lists again after a watch in which room came for objects that had none", async () => {
    const budget = new ObjectBudget({ totalBytes: 2_048, home: "" });
    const large = "x".repeat(400);
    const [a, b] = [object("shop/a", "1"), object("shop/b", "2")];
    const lists = [answer(list("7", [a, b])), answer(list("9", [b]))];
    const watches = [lines(line("DELETED", object("shop/a", "8"))), silence];
    const { changes } = await play({ lists, watches }, { budget, decode: () => large });
    await until(() => changes.includes("+shop/b"), "it is used");
    expect(changes).toEqual(["+shop/a", "-shop/a", "+shop/b"]);
  });

  it("does not run in circles when each watch ends at once", async () => {
    const { watches } = await play({ lists: [answer(list("7", []))], watches: [lines("")] });
    // Of pauses of 1 to 15 ms, thousands would fit.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(watches().length).toBeLessThan(120);
    await until(() => watches().length > 3, "it goes on");
  });

  it("takes a malformed line for a failure, and misses nothing", async () => {
    const { changes, watches, reflector } = await play({
      lists: [answer(list("7", []))],
      watches: [lines(line("ADDED", object("a", "8")), "nonsense\n"), lines(line("ADDED", object("b", "9"))), silence],
    });
    await until(() => changes.length === 2, "both are told");
    const versions = watches().map((query) => query.get("resourceVersion"));
    expect(versions.slice(0, 2)).toEqual(["7", "8"]);
    // A wall clock that jumps back would keep first claims waiting for as long.
    expect(performance.now() - reflector.answeredMs).toBeGreaterThanOrEqual(0);
  });

  it.each([
    ["selected objects", false, ["7 < 9", "9", "5 < 10", "5 < 10"]],
    ["one of all", true, ["7", "9", "5 < 10", "5"]],
  ])("tells its versions; after a failure it asks for %s", async (_, isWhole, told) => {
    const versions: string[] = [];
    const answered = (version?: string, before?: bigint) => versions.push([version, before ?? []].flat().join(" < "));
    const history = { version: 9n, answered };
    const first: StubAnswer = (response) => {
      // Told by another watch before the answer comes.
      history.version++;
      sendJson(response, 200, list("7", [object("a", "7")]));
    };
    const watches = [lines(line("BOOKMARK", object("", "9")), "nonsense\n"), silence];
    const script = { lists: [first, answer(list("5", []))], watches, version: "5" };
    const { watches: opened } = await play(script, { isWhole, history });
    await until(() => opened().length === 2, "another watch");
    expect(versions).toEqual(told);
  });

  it("continues when its owner throws", async () => {
    const onChange = ({ key }: Change<string>): void => {
      if (key === "a") throw new Error("a bug");
    };
    const { changes } = await play({ lists: [answer(list("7", [object("a", "1"), object("b", "2")]))] }, { onChange });
    await until(() => changes.length === 2, "both are told");
  });

  it("forgets all when the server no longer knows an optional collection", async () => {
    const gone: StubAnswer = (response) => sendStatus(response, 404, "NotFound");
    const lists = [answer(list("7", [object("a", "1")]))];
    const { reflector, changes } = await play({ lists, watches: [gone] }, { optional: true });
    await until(() => changes.includes("-a"), "it is gone");
    expect(reflector).toMatchObject({ isSynced: true, problems: [] });
  });

  it("that is closed reports nothing any more, and closing does not wait for it", async () => {
    const { reflector } = await play({ lists: [() => {}] });
    const synced = expect(reflector.synced()).rejects.toThrow("The reflector of things was closed");
    await reflector.close();
    await synced;
  });
});

describe("while no watch is open a reflector says why, and since when", () => {
  const sinceOf = (text: string): number => Date.parse(/ since (?<time>\S+Z): /.exec(text)?.groups?.time ?? "");

  it("of a server that refuses it: since it began", async () => {
    const beganMs = Date.now();
    const { reflector } = await play({ lists: [(response) => sendStatus(response, 403, "Forbidden")] });
    await until(() => reflector.problems.length > 0, "the list has failed");
    expect(reflector.silence).toMatch(/^The API server has refused this node's watch since .*403/);
    expect(sinceOf(reflector.silence)).toBeGreaterThanOrEqual(beganMs);
  });

  it("of a server that does not answer: since the last watch ended", async () => {
    let hangUp = (): void => {};
    const open: StubAnswer = (response) => {
      response.writeHead(200).flushHeaders();
      hangUp = () => response.destroy();
    };
    const watches: StubAnswer[] = [open, (response) => response.destroy()];
    const { reflector } = await play({ lists: [answer(list("9", []))], watches });
    await until(() => reflector.isWatching, "the watch is open");
    const brokeMs = Date.now();
    hangUp();
    await until(() => reflector.problems.length > 0, "others have failed");
    expect(reflector.silence).toMatch(/^The API server has not answered since .*closed/);
    expect(sinceOf(reflector.silence) - brokeMs).toBeGreaterThanOrEqual(0);
    expect(sinceOf(reflector.silence)).toBeLessThan(Date.now());
  });
});

it("waiting for the first list leaves nothing behind when it is given up, however long the list takes", async () => {
  const { reflector } = await play({ lists: [silence] });
  expect(await bytesLeftPerWait((signal) => reflector.synced(signal))).toBe(0);
});
