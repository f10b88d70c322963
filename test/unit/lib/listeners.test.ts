import { expect, it } from "vitest";
import { Listeners } from "../../../host/lib/listeners.ts";

function open() {
  const failures: unknown[] = [];
  return { failures, listeners: new Listeners<number>((error, news) => failures.push([error, news])) };
}

it("the same function twice is two listeners, and one of them may leave", () => {
  const { listeners } = open();
  const heard: number[] = [];
  const listen = (news: number) => heard.push(news);
  const leave = listeners.add(listen);
  listeners.add(listen);
  listeners.tell(1);
  leave();
  leave();
  listeners.tell(2);
  expect(heard).toEqual([1, 1, 2]);
});

it("who leaves while the others are told hears no more; who comes meanwhile hears the next news", () => {
  const { listeners } = open();
  const heard: string[] = [];
  listeners.add((news) => {
    heard.push(`first ${news}`);
    leave();
    if (news === 1) listeners.add((late) => heard.push(`late ${late}`));
  });
  const leave = listeners.add((news) => heard.push(`second ${news}`));
  listeners.tell(1);
  listeners.tell(2);
  expect(heard).toEqual(["first 1", "first 2", "late 2"]);
});

it("one that throws is told of, and keeps the others from nothing", () => {
  const { listeners, failures } = open();
  const heard: number[] = [];
  const error = new Error("no");
  listeners.add(() => {
    throw error;
  });
  listeners.add((news) => heard.push(news));
  listeners.tell(7);
  expect([heard, failures]).toEqual([[7], [[error, 7]]]);
});
