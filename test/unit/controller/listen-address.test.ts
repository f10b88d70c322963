import { expect, it } from "vitest";
import { type ListenAddress, parseListenAddress } from "../../../host/controller/status-server.ts";

it.each<[string, ListenAddress | undefined]>([
  ["off", { kind: "off" }],
  ["127.0.0.1:9474", { kind: "loopback", host: "127.0.0.1", port: 9474 }],
  ["127.9.9.9:0", { kind: "loopback", host: "127.9.9.9", port: 0 }],
  ["[::1]:80", { kind: "loopback", host: "::1", port: 80 }],
  ["unix:/run/berth/controller.sock", { kind: "unix", path: "/run/berth/controller.sock" }],
  ["0.0.0.0:80", undefined],
  ["10.0.0.1:80", undefined],
  ["[::]:80", undefined],
  ["[fd00::1]:80", undefined],
  ["[127.0.0.1]:80", undefined],
  ["127.0.0.1:65536", undefined],
  ["127.0.0.300:80", undefined],
  ["127.0.0.1", undefined],
  ["localhost:80", undefined],
  ["unix:relative", undefined],
  ["", undefined],
])("where a controller may be asked: %s", (text, expected) => expect(parseListenAddress(text)).toEqual(expected));
