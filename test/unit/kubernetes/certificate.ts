/** Certificates that sign themselves, for TLS servers and clients of tests: for the address 127.0.0.1. */
import { execFileSync } from "node:child_process";
import type { Pair } from "../../../host/controller/certificates/certificate.ts";

export function makeCertificate(commonName: string): Pair {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-keyout", "-"];
  const names = ["-subj", `/CN=${commonName}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  const words = ["req", "-x509", "-days", "365", ...key, ...names];
  const text = execFileSync("openssl", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const start = text.indexOf("-----BEGIN CERTIFICATE-----");
  return { key: text.slice(0, start), cert: text.slice(start) };
}
