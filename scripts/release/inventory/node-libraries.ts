/** The libraries inside the Node.js executable: their licences, and how its version table and its LICENSE name them. */

interface NodeLibrary {
  /** SPDX expression. */
  readonly license: string;
  /** Key of `process.versions`; absent: Node.js states no version. */
  readonly versionKey?: string;
  /**
   * Debian package whose copyright file has the text; absent: Node.js's LICENSE has a section with the library's name.
   */
  readonly textOf?: string;
}

export const NODE_LIBRARIES: Readonly<Record<string, NodeLibrary>> = {
  Acorn: { license: "MIT", versionKey: "acorn" },
  "c-ares": { license: "MIT", versionKey: "ares" },
  merve: { license: "MIT", versionKey: "merve" },
  ittapi: { license: "BSD-3-Clause OR GPL-2.0-only" },
  amaro: { license: "MIT", versionKey: "amaro" },
  swc: { license: "Apache-2.0" },
  ICU: { license: "Unicode-3.0", versionKey: "icu" },
  libuv: { license: "MIT", versionKey: "uv" },
  LIEF: { license: "Apache-2.0", versionKey: "lief" },
  llhttp: { license: "MIT", versionKey: "llhttp" },
  undici: { license: "MIT", versionKey: "undici" },
  OpenSSL: { license: "Apache-2.0", versionKey: "openssl" },
  "Punycode.js": { license: "MIT" },
  V8: { license: "BSD-3-Clause", versionKey: "v8" },
  SipHash: { license: "CC0-1.0" },
  zlib: { license: "Zlib", versionKey: "zlib" },
  simdjson: { license: "Apache-2.0", versionKey: "simdjson" },
  simdutf: { license: "MIT", versionKey: "simdutf" },
  ada: { license: "MIT", versionKey: "ada" },
  minimatch: { license: "BlueOak-1.0.0" },
  inspector_protocol: { license: "BSD-3-Clause" },
  nghttp2: { license: "MIT", versionKey: "nghttp2" },
  caja: { license: "Apache-2.0" },
  brotli: { license: "MIT", versionKey: "brotli" },
  zstd: { license: "BSD-3-Clause", versionKey: "zstd" },
  HdrHistogram: { license: "BSD-2-Clause OR CC0-1.0" },
  "node-heapdump": { license: "ISC" },
  rimraf: { license: "ISC" },
  uvwasi: { license: "MIT", versionKey: "uvwasi" },
  ngtcp2: { license: "MIT", versionKey: "ngtcp2" },
  nghttp3: { license: "MIT", versionKey: "nghttp3" },
  "node-fs-extra": { license: "MIT" },
  "on-exit-leak-free": { license: "MIT" },
  "sonic-boom": { license: "MIT" },
  libffi: { license: "MIT", versionKey: "libffi", textOf: "libffi8" },
  SQLite: { license: "blessing", versionKey: "sqlite", textOf: "libsqlite3-0" },
};

/** Sections of LICENSE about programs that are not in the executable: tools of its build and tests, and npm. */
export const NOT_IN_EXECUTABLE: readonly string[] = [
  ...["corepack", "npm", "postject", "GYP", "jinja2", "markupsafe", "cpplint.py", "gypi_to_gn.py", "gtest"],
];

/** Keys of `process.versions` that name no library: Node.js's own code and numbers, and the data of ICU. */
export const NO_LIBRARY: readonly string[] = [
  ...["node", "modules", "napi", "nbytes", "ncrypto", "cldr", "tz", "unicode"],
];
