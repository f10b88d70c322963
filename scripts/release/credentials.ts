/** Credentials of a registry, where `docker login`, `buildah login` and `helm` keep or find them: config.json. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import * as z from "zod";

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

const Config = z.object({
  auths: z
    .record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() }))
    .optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
  credsStore: z.string().optional(),
});
const Answer = z.object({ Username: z.string(), Secret: z.string() });
/** The name of a helper becomes a part of a program's. */
const HELPER = /^[\w.-]+$/;
/** A helper's user if the secret is a token of OAuth and no password. */
const TOKEN_USER = "<token>";

export function credentialsFile({ DOCKER_CONFIG, HOME }: NodeJS.ProcessEnv = process.env): string {
  return join(DOCKER_CONFIG || join(HOME || homedir(), ".docker"), "config.json");
}

/**
 * Returns the credentials of the file, or of its helper, for a registry (`registry.example:5000`); undefined if there
 * are none. Throws for a file of another shape, a helper that fails, and identity tokens.
 */
export function findCredentials(host: string, file: string): Credentials | undefined {
  const config = readConfig(file);
  const helper = config?.credHelpers?.[host] ?? config?.credsStore;
  const entry = config?.auths?.[host] ?? config?.auths?.[`https://${host}`];
  const found = decode(entry?.auth) ?? (helper === undefined ? undefined : askHelper(helper, host));
  if (entry?.identitytoken !== undefined || found?.user === TOKEN_USER)
    throw new Error(
      `${file} has an identity token for ${host}, which is not supported: log in with a password or an access token`,
    );
  return found;
}

function readConfig(file: string): z.infer<typeof Config> | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    return Config.parse(JSON.parse(text));
  } catch {
    // The reason would show parts of the file.
    throw new Error(`${file} is not the JSON that docker login writes`);
  }
}

function decode(auth = ""): Credentials | undefined {
  const [, user = "", password] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth, "base64").toString()) ?? [];
  return password === undefined ? undefined : { user, password };
}

function askHelper(name: string, host: string): Credentials | undefined {
  if (!HELPER.test(name)) throw new Error(`"${name}" is no name of a credential helper`);
  try {
    const output = execFileSync(`docker-credential-${name}`, ["get"], { input: host, stdio: ["pipe", "pipe", "pipe"] });
    const { Username, Secret } = Answer.parse(JSON.parse(output.toString()));
    return { user: Username, password: Secret };
  } catch (error) {
    const said = String((error as { stdout?: Buffer }).stdout ?? "");
    if (said.includes("credentials not found")) return undefined;
    throw new Error(`docker-credential-${name} gives no credentials for ${host}`);
  }
}
