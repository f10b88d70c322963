/**
 * Certificates that sign themselves, for TLS servers and clients of tests: for the address 127.0.0.1, valid for years.
 */
import {
  alternativeNames,
  makeKey,
  type Pair,
  writeCertificate,
} from "../../../host/controller/certificates/certificate.ts";

export function makeCertificate(commonName: string): Pair {
  const key = makeKey();
  const names = { issuer: commonName, issuerKey: key, subject: commonName, subjectKey: key };
  const validity = { from: new Date("2020-01-01"), to: new Date("2049-12-31") };
  return { key, cert: writeCertificate({ ...names, validity, extensions: [alternativeNames(["127.0.0.1"])] }) };
}
