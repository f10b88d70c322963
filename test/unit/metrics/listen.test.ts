import { expect, it } from "vitest";
import { type ListenAddress, parseListenAddress } from "../../../host/metrics/listen.ts";

it.each<[string, ListenAddress | undefined]>([
  ["off", { kind: "off" }],
  ["127.0.0.1:9474", { kind: "loopback", host: "127.0.0.1", port: 9474 }],
  ["127.9.9.9:0", { kind: "loopback", host: "127.9.9.9", port: 0 }],
  ["[::1]:80", { kind: "loopback", host: "::1", port: 80 }],
  ["unix:/run/berth/controller.sock", { kind: "unix", path: "/run/berth/controller.sock" }],
  ["0.0.0.0:80", { kind: "network", host: "0.0.0.0", port: 80 }],
  ["10.0.0.1:80", { kind: "network", host: "10.0.0.1", port: 80 }],
  ["[::]:80", { kind: "network", host: "::", port: 80 }],
  ["*:80", { kind: "network", host: undefined, port: 80 }],
  ["[fd00::1]:80", { kind: "network", host: "fd00::1", port: 80 }],
  ["[10.0.0.1]:80", { kind: "network", host: "10.0.0.1", port: 80 }],
  ["fd00::1:80", undefined],
  ["127.0.0.1:65536", undefined],
  ["127.0.0.300:80", undefined],
  ["127.0.0.1", undefined],
  ["localhost:80", undefined],
  ["unix:relative", undefined],
  ["", undefined],
])("listens on %s", (text, expected) => expect(parseListenAddress(text)).toEqual(expected));
