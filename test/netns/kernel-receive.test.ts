/** Answers of the kernel stay as they were received, however many come after them, on whatever socket. */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Conversation, createConversation } from "../../host/kernel/netlink/conversation.ts";
import { encodeLink } from "../../host/kernel/netlink/families.ts";
import { RTM_GETLINK } from "../../host/kernel/netlink/link/constants.ts";
import { openRouteSocket } from "../../host/kernel/netlink/socket.ts";
import { ipIn } from "./kernel-scene.ts";

const names = ["a", "b"].map((suffix) => `bkr${suffix}${process.pid}`);

beforeAll(() => {
  names.forEach((name, at) => {
    execFileSync("ip", ["netns", "add", name]);
    ipIn(name, `link add v${at} type veth peer name w${at}`);
  });
});

afterAll(() => {
  for (const name of names) execFileSync("ip", ["netns", "del", name]);
});

it("of two namespaces in turns, a megabyte in all", () => {
  using sockets = new DisposableStack();
  const open = (name: string) => createConversation(sockets.use(openRouteSocket(`/run/netns/${name}`)));
  const [one = expect.unreachable(), other = expect.unreachable()] = names.map(open);
  const payload = encodeLink({ deviceType: 0, index: 0, flags: 0, change: 0, attributes: [] });
  const dump = (to: Conversation) => to.dump({ operation: "list links", type: RTM_GETLINK, payload });
  const received: [payload: Uint8Array, copy: Uint8Array][] = [];
  let lengthBytes = 0;
  for (let round = 0; lengthBytes < 2 ** 20; round++) {
    for (const { payload: bytes } of dump(round % 2 === 0 ? one : other)) {
      received.push([bytes, bytes.slice()]);
      lengthBytes += bytes.length;
    }
  }
  expect(received.length).toBeGreaterThan(100);
  expect(received.filter(([bytes, copy]) => Buffer.compare(bytes, copy) !== 0)).toEqual([]);
});
