/**
 * Images for pods without a registry: an archive as `docker save` writes it, which `ctr images import` takes.
 *
 *   const files = [{ path: "pause", content, mode: 0o755 }];
 *   await writeImage("/tmp/pause.tar", { name: PAUSE_IMAGE, command: ["/pause"], files });
 *
 * Effects: writes the archive.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../../../scripts/setup/paths.mjs";
import { requireCommand } from "../command.ts";

export const PAUSE_IMAGE = "docker.io/local/pause:1";
/** `/bin/busybox sh`, and the same with `sleep`, `nc`, `wget` and the rest. */
export const BUSYBOX_IMAGE = "docker.io/local/busybox:1";

/** `node`, of this machine, with its libraries. */
export const NODE_IMAGE = "docker.io/local/node:1";

interface ImageFile {
  /** Without a slash in front. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
}

export interface Image {
  readonly name: string;
  /** Command of a container that names no other. */
  readonly command: readonly string[];
  readonly files: readonly ImageFile[];
}

const BLOCK = 512;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** Writes the archives of both images into the folder and gives their paths. */
export async function writeImages(directory: string): Promise<string[]> {
  const busybox = (await requireCommand(["sh", "-c", "command -v busybox"])).trim();
  const images: Record<string, Image> = {
    pause: {
      name: PAUSE_IMAGE,
      command: ["/pause"],
      files: [{ path: "pause", content: await readFile(join(root, "dist", "nodes", "pause")), mode: 0o755 }],
    },
    busybox: {
      name: BUSYBOX_IMAGE,
      command: ["/bin/busybox", "sh"],
      files: [{ path: "bin/busybox", content: await readFile(busybox), mode: 0o755 }],
    },
  };
  return Promise.all(Object.entries(images).map(([name, image]) => writeImage(join(directory, `${name}.tar`), image)));
}

/** Writes the archive and gives its path. */
export async function writeImage(path: string, image: Image): Promise<string> {
  await writeFile(path, encodeImage(image));
  return path;
}

/** Writes the archive of {@link NODE_IMAGE} into the folder and gives its path. */
export async function writeNodeImage(directory: string): Promise<string> {
  const libraries = (await requireCommand(["ldd", process.execPath])).match(/\/\S+(?= \(0x)/g) ?? [];
  const files = [process.execPath, ...libraries].map(async (path, at): Promise<ImageFile> => {
    const content = await readFile(path);
    return { path: at === 0 ? "bin/node" : path.slice(1), content, mode: 0o755 };
  });
  const image = { name: NODE_IMAGE, command: ["/bin/node"], files: await Promise.all(files) };
  return writeImage(join(directory, "node.tar"), image);
}

/** One layer, its configuration, and the manifest that names both. */
function encodeImage({ name, command, files }: Image): Buffer {
  const layer = encodeTar(files);
  const config = Buffer.from(
    JSON.stringify({
      architecture: ARCHITECTURES[process.arch] ?? process.arch,
      os: "linux",
      config: { Cmd: command, Env: ["PATH=/bin"] },
      rootfs: { type: "layers", diff_ids: [`sha256:${digestOf(layer)}`] },
      history: [{}],
    }),
  );
  const configName = `${digestOf(config)}.json`;
  const layerName = `${digestOf(layer)}/layer.tar`;
  const manifest = Buffer.from(JSON.stringify([{ Config: configName, RepoTags: [name], Layers: [layerName] }]));
  return encodeTar([
    { path: configName, content: config, mode: 0o644 },
    { path: layerName, content: layer, mode: 0o644 },
    { path: "manifest.json", content: manifest, mode: 0o644 },
  ]);
}

function digestOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Plain files of root, from the beginning of time: the same bytes each time (POSIX.1-1988, ustar). */
function encodeTar(files: readonly ImageFile[]): Buffer {
  const parts = files.flatMap(({ path, content, mode }) => [
    encodeHeader(path, content.length, mode),
    content,
    Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

/**
 *   0 name · 100 mode · 108 uid · 116 gid · 124 size · 136 mtime · 148 checksum · 156 type · 157 link ·
 *   257 "ustar" · 263 "00"
 */
function encodeHeader(path: string, size: number, mode: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new RangeError(`"${path}" is too long for a name in an archive`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;
  header.write(path, 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(0, 11), 136);
  header.write("        ", 148);
  header.write("0", 156);
  header.write("ustar\u000000", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)} `, 148);
  return header;
}
