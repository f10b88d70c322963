/** The Helm chart: the ports of agents and controller, the keys of these ports, and their callers. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { parseListenAddress } from "../../../../host/metrics/listen.ts";
import { AGENTS_AUDIENCE } from "../../../../host/metrics/scrape-server.ts";
import manifest from "../../../../package.json" with { type: "json" };
import { root } from "../../../../scripts/setup/paths.mjs";
import type { KubernetesObject } from "./kubernetes-schemas.ts";
import { find, objectsOf, ofKind } from "./rendered.ts";

const namesOf = (objects: readonly { readonly name: string }[]): string[] => objects.map(({ name }) => name);
const templateOf = (objects: readonly KubernetesObject[], kind: string) => find(objects, kind, /./).spec.template.spec;

it("by default there is no port, no token, no right, no map", () => {
  const text = JSON.stringify(objectsOf("plain"));
  const words = ["--map-listen", "berth-agents", "/v1/history", "tokenreviews", "--metrics", "monitoring.coreos.com"];
  for (const word of words) expect(text).not.toContain(word);
});

describe("the address map", () => {
  it("is on the controller's loopback, asks agents on their port, and has the rights for that", () => {
    const objects = objectsOf("other");
    const { containers, volumes } = templateOf(objects, "Deployment");
    const [{ args, ports, volumeMounts }] = containers;
    const places = [
      "--agents-token-file=/var/run/secrets/berth/token",
      "--metrics-cert-file=/etc/berth/metrics/tls.crt",
    ];
    const ofMap = ["--map-listen=127.0.0.1:9476", "--agents-port=9473", ...places];
    expect(args).toEqual(expect.arrayContaining(ofMap));
    const page = readFileSync(join(root, "docs/map.md"), "utf8");
    const [, deployment, port] = /port-forward deploy\/(\S+) (\d+)`/.exec(page) ?? [];
    expect(ports).toContainEqual({ name: "map", containerPort: Number(port) });
    expect(namesOf(ofKind(objectsOf("plain"), "Deployment").map(({ metadata }) => metadata))).toEqual([deployment]);
    expect(templateOf(objects, "DaemonSet").containers[0].args).toContain("--metrics-listen=*:9473");
    const serviceAccountToken = { audience: AGENTS_AUDIENCE, expirationSeconds: 3_600, path: "token" };
    expect(volumes).toContainEqual({ name: "agents-token", projected: { sources: [{ serviceAccountToken }] } });
    expect(namesOf(volumeMounts)).toEqual(["metrics", "agents-token", "agents"]);
    const { rules } = find(objects, "ClusterRole", /-map$/);
    expect(rules).toEqual([{ nonResourceURLs: ["/v1/explain", "/v1/history"], verbs: ["get"] }]);
    expect(namesOf(find(objects, "ClusterRoleBinding", /-map$/).subjects)).toEqual(["net-controller"]);
    const reviews = find(objects, "ClusterRole", /-metrics$/).rules;
    const reviewed = reviews.flatMap(({ resources }: { resources: string[] }) => resources);
    expect(reviewed).toEqual(["tokenreviews", "subjectaccessreviews"]);
    expect(ofKind(objects, "Service").filter(({ metadata }) => metadata.name.endsWith("-map"))).toEqual([]);
  });

  it("with a Service is for other machines, over TLS and by token", () => {
    const objects = objectsOf("ports");
    const [{ args }] = templateOf(objects, "Deployment").containers;
    expect(args).toContain("--map-listen=*:9476");
    expect(args.join()).not.toContain("insecure");
    const { spec } = find(objects, "Service", /-map$/);
    expect([spec.ports, spec.selector["app.kubernetes.io/component"]]).toEqual([
      [{ name: "https", port: 443, targetPort: "map" }],
      "controller",
    ]);
    const { ingress } = find(objects, "NetworkPolicy", /-controller$/).spec;
    expect(ingress).toEqual([{ ports: [{ port: "metrics" }, { port: "map" }] }]);
  });
});

describe("keys", () => {
  const secretsOf = (pod: unknown): string[] =>
    [...JSON.stringify(pod).matchAll(/"secretName":"([^"]+)"/g)].map(([, name = ""]) => name);
  const certifiedIn = (objects: readonly KubernetesObject[]) => {
    const [{ args }] = templateOf(objects, "Deployment").containers;
    return Object.fromEntries(
      args.flatMap((arg: string) => {
        const [, secret, names] = /^--certificate-secret=(.*)=(.*)$/.exec(arg) ?? [];
        return secret === undefined ? [] : [[secret, names?.split(",")]];
      }),
    );
  };
  const [AGENT, CONTROLLER] = ["odd.one-berth-agent-tls", "odd.one-berth-controller-tls"];

  it("are in no template", () => {
    for (const secret of ofKind(objectsOf("ports"), "Secret")) expect(Object.keys(secret)).not.toContain("data");
  });

  it("of the controller are not on the nodes of agents, nor the agents' key in its pods", () => {
    const objects = objectsOf("ports");
    expect(secretsOf(find(objects, "DaemonSet", ""))).toEqual([AGENT]);
    const { volumes } = templateOf(objects, "Deployment");
    expect(secretsOf(volumes)).toEqual([CONTROLLER, AGENT]);
    const agents = volumes.find(({ name }: { name: string }) => name === "agents");
    expect(agents.secret.items).toEqual([{ key: "ca.crt", path: "ca.crt" }]);
    // A certificate that is not there yet keeps no agent from attaching pods.
    const mounted = [...templateOf(objects, "DaemonSet").volumes, ...volumes];
    const secrets = mounted.flatMap(({ secret }: { secret?: { optional?: boolean } }) => secret ?? []);
    expect(secrets.map(({ optional }) => optional)).toEqual([true, true, true]);
  });

  it("are the controller's to write, and no other Secret is", () => {
    const objects = objectsOf("ports");
    const names = namesOf(ofKind(objects, "Secret").map(({ metadata }) => metadata));
    expect(names).toEqual([AGENT, CONTROLLER, "odd.one-berth-authority"]);
    const rules = [...ofKind(objects, "Role"), ...ofKind(objects, "ClusterRole")].flatMap(({ rules }) => rules);
    expect(rules.filter((rule) => JSON.stringify(rule).includes("secrets"))).toEqual([
      { apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["get", "patch"] },
    ]);
    expect(namesOf(find(objects, "RoleBinding", /-authority$/).subjects)).toEqual(["odd.one-berth-controller"]);
  });

  it("have the names of all Services, which have no dot", () => {
    const objects = objectsOf("ports");
    const services = ofKind(objects, "Service").map(({ metadata }) => `${metadata.name}.${metadata.namespace}.svc`);
    expect(Object.values(certifiedIn(objects)).flat().sort()).toEqual([...services, "map.example.com"].sort());
    expect(services.sort()).toEqual(
      ["agent", "controller", "map"].map((component) => `odd-one-berth-${component}.net.svc`),
    );
  });

  it("of others are mounted, and not written", () => {
    const objects = objectsOf("full");
    expect(secretsOf(find(objects, "DaemonSet", ""))).toEqual(["own"]);
    expect(Object.keys(certifiedIn(objects))).toEqual([expect.stringMatching(/-controller-tls$/)]);
    expect(secretsOf(templateOf(objectsOf("other"), "Deployment").volumes)).toEqual(["two", "net-agent-tls"]);
  });

  it("of cert-manager are its Certificates, for the same names", () => {
    const objects = objectsOf("other");
    const certificates = ofKind(objects, "Certificate").map(({ spec }) => [spec.secretName, spec.dnsNames]);
    expect(certificates).toEqual([["net-agent-tls", ["net-agent.net-system.svc"]]]);
    expect([certifiedIn(objects), ofKind(objects, "Secret")]).toEqual([{}, []]);
    expect(JSON.stringify(objects)).not.toContain("authority-secret");
  });

  it("are verified by Prometheus, unless tlsConfig says otherwise", () => {
    const configs = (objects: readonly KubernetesObject[]) =>
      ofKind(objects, "ServiceMonitor").map(({ spec }) => spec.endpoints[0].tlsConfig);
    const expected = ["agent", "controller"].map((component) => ({
      serverName: `odd-one-berth-${component}.net.svc`,
      ca: { secret: { name: `odd.one-berth-${component}-tls`, key: "ca.crt" } },
    }));
    expect(configs(objectsOf("ports"))).toEqual(expected);
    const own = { insecureSkipVerify: false, serverName: "berth-metrics" };
    expect(configs(objectsOf("full"))).toEqual([own, own]);
  });
});

describe("metrics", () => {
  const objects = objectsOf("ports");
  const programs = [find(objects, "DaemonSet", /-agent$/), find(objects, "Deployment", /-controller$/)];

  it("are served on addresses that agent and controller accept", () => {
    for (const { spec } of programs) {
      const [{ args, ports }] = spec.template.spec.containers;
      const addresses = args.flatMap((arg: string) => /^--(?:metrics-)?listen=(.*)$/.exec(arg)?.[1] ?? []);
      const port = ports.find(({ name }: { name: string }) => name === "metrics").containerPort;
      expect(addresses.map(parseListenAddress)).toContainEqual({ kind: "network", host: undefined, port });
      expect(addresses.map(parseListenAddress)).not.toContain(undefined);
    }
  });

  it.each(["10.0.0.1", "fd00::1"])("are served on the address %s of the pod alone, with listen: pod", (ip) => {
    for (const kind of ["DaemonSet", "Deployment"]) {
      const [{ args, env }] = templateOf(objectsOf("full"), kind).containers;
      expect(env).toContainEqual({ name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } });
      const listens = args.flatMap((arg: string) => /^--(?:metrics|map)-listen=(.*)$/.exec(arg)?.[1] ?? []);
      expect(listens.length).toBe(kind === "Deployment" ? 2 : 1);
      for (const text of listens)
        expect(parseListenAddress(text.replace("$(POD_IP)", ip))).toMatchObject({ kind: "network", host: ip });
    }
  });

  it("a controller with a network of its own is asked for its health by the kubelet", () => {
    const [{ args, livenessProbe }] = templateOf(objectsOf("full"), "Deployment").containers;
    expect([args.includes("--listen=*:9999"), livenessProbe.httpGet.host]).toEqual([true, undefined]);
  });

  it("are found by Prometheus through a Service, whose labels its pods have", () => {
    for (const { metadata, spec } of ofKind(objects, "ServiceMonitor")) {
      const service = find(objects, "Service", new RegExp(`^${metadata.name.replace(".", "-")}$`));
      expect(service.metadata.labels).toMatchObject(spec.selector.matchLabels);
      expect(service.spec.ports[0].name).toBe(spec.endpoints[0].port);
      const pods = programs.map((program) => program.spec.template.metadata.labels);
      expect(pods).toContainEqual(expect.objectContaining(service.spec.selector));
    }
  });

  it("have the alerts and the dashboard of the files, with links to this version's site or one's own", () => {
    const site = "https://vendor.io/berth/docs/";
    const file = readFileSync(join(root, "deploy/chart/berth/files/alerts.yaml"), "utf8");
    const places = { ports: `${site}${manifest.version}/`, full: "https://example.com/berth/" } as const;
    for (const [name, place] of Object.entries(places) as ["ports" | "full", string][]) {
      const set = objectsOf(name);
      expect(find(set, "PrometheusRule", "").spec).toEqual(parse(file.replaceAll(site, place)));
      const dashboard = find(set, "ConfigMap", /-dashboard$/).data["berth.json"];
      expect(JSON.parse(dashboard).title).toBe("Berth");
      expect(dashboard).toContain(`"url": "${place}runbooks.html#berthagentnotready"`);
    }
  });
});
