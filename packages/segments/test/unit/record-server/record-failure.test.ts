import { expect, it } from "vitest";
import type { SourceReason } from "../../../../../host/resources/pool-source.ts";
import { SourceFailure } from "../../../blocks/block-source.ts";
import { RecordServerError } from "../../../record-server/http-client.ts";
import { recordFailure } from "../../../record-server/record-failure.ts";

const answer = (status?: number) => new RecordServerError("no", status === undefined ? {} : { status });

it.each<[what: string, error: Error, wanted: SourceReason]>([
  ["no answer", answer(), "RecordsAway"],
  ["no answer in time", new DOMException("too late", "TimeoutError"), "RecordsAway"],
  ["a broken server", answer(502), "RecordsAway"],
  ["too many requests", answer(429), "RecordsAway"],
  ["a wrong token", answer(401), "TokenRefused"],
  ["a token without the right", answer(403), "Forbidden"],
  ["no such prefix", answer(404), "NoRange"],
  ["a refused body", answer(400), "Failed"],
])("%s: the reason", (_, error, reason) => {
  const failure = recordFailure(error);
  expect(failure).toBeInstanceOf(SourceFailure);
  expect(failure).toMatchObject({ reason, message: error.message });
});

it("an error of other origin stays unchanged", () => {
  const error = new Error("the API server is away");
  expect(recordFailure(error)).toBe(error);
});
