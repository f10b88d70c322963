import { expect, it } from "vitest";
import { encodeUtf8, utf8Length } from "../../../host/lib/utf8.ts";

it.each(["", "eth0", "\0", "\x7f", "\x80", "aé", "éa", "€", "a\ud83d\ude00", "\ud83d", "x".repeat(300)])(
  "%j as the platform encodes it",
  (text) => {
    const wanted = new TextEncoder().encode(text);
    expect(encodeUtf8(text)).toEqual(wanted);
    expect(utf8Length(text)).toBe(wanted.length);
  },
);
