/**
 * Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and bare pods as objects: one container that does nothing and
 * ends on request.
 */
import type { KubeObject } from "../kube-client.ts";
import { BUSYBOX_IMAGE, PAUSE_IMAGE } from "./image.ts";

export interface WorkloadSpec {
  readonly name: string;
  readonly replicas?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Value of the label `app`. Default: the name. */
  readonly app?: string;
  /** Fields of the template's spec. */
  readonly pod?: object;
  /** For /bin/busybox; default: a container that waits. */
  readonly busybox?: readonly string[];
  /** Another value makes another template. */
  readonly version?: string;
}

export const paths = {
  pods: (namespace: string) => `/api/v1/namespaces/${namespace}/pods`,
  deployments: (namespace: string) => `/apis/apps/v1/namespaces/${namespace}/deployments`,
  statefulSets: (namespace: string) => `/apis/apps/v1/namespaces/${namespace}/statefulsets`,
  daemonSets: (namespace: string) => `/apis/apps/v1/namespaces/${namespace}/daemonsets`,
  jobs: (namespace: string) => `/apis/batch/v1/namespaces/${namespace}/jobs`,
  cronJobs: (namespace: string) => `/apis/batch/v1/namespaces/${namespace}/cronjobs`,
  definitions: (namespace: string) => `/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions`,
} as const;

/** The container of all workloads, by the name `main`. */
export function podSpec({ pod = {}, busybox }: WorkloadSpec): object {
  const run =
    busybox === undefined ? { image: PAUSE_IMAGE } : { image: BUSYBOX_IMAGE, command: ["/bin/busybox", ...busybox] };
  return { terminationGracePeriodSeconds: 2, containers: [{ name: "main", imagePullPolicy: "Never", ...run }], ...pod };
}

function template(spec: WorkloadSpec): object {
  const { name, annotations = {}, version = "1" } = spec;
  return { metadata: { labels: { app: name, version }, annotations }, spec: podSpec(spec) };
}

export function podOf(spec: WorkloadSpec): KubeObject {
  const { name, annotations = {}, app = name } = spec;
  return { apiVersion: "v1", kind: "Pod", metadata: { name, labels: { app }, annotations }, spec: podSpec(spec) };
}

export function deploymentOf(spec: WorkloadSpec): KubeObject {
  const { name, replicas = 1 } = spec;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: template(spec) },
  };
}

export function statefulSetOf(spec: WorkloadSpec): KubeObject {
  const { name, replicas = 1 } = spec;
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name },
    spec: {
      ...{ replicas, serviceName: name, podManagementPolicy: "Parallel" },
      selector: { matchLabels: { app: name } },
      template: template(spec),
    },
  };
}

/** One pod on each node. */
export function daemonSetOf(spec: WorkloadSpec): KubeObject {
  const { name } = spec;
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name },
    spec: { selector: { matchLabels: { app: name } }, template: template(spec) },
  };
}

/** `replicas` pods side by side, each once. */
export function jobOf(spec: WorkloadSpec): KubeObject {
  const { name, replicas = 1 } = spec;
  const once = { ...spec, pod: { restartPolicy: "Never", ...spec.pod } };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name },
    spec: { completions: replicas, parallelism: replicas, template: template(once) },
  };
}

/** Its Jobs are like {@link jobOf}'s; none comes by itself before a new year. */
export function cronJobOf(spec: WorkloadSpec): KubeObject {
  const { spec: job } = jobOf(spec);
  return {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name: spec.name },
    spec: { schedule: "0 0 1 1 *", jobTemplate: { spec: job } },
  };
}

/** A Job of a CronJob that exists, out of turn, as `kubectl create job --from` makes it. */
export function runOf({ metadata, spec }: KubeObject, name: string): KubeObject {
  const { name: owner, uid } = metadata;
  const ownerReferences = [{ apiVersion: "batch/v1", kind: "CronJob", name: owner, uid, controller: true }];
  return { apiVersion: "batch/v1", kind: "Job", metadata: { name, ownerReferences }, spec: spec.jobTemplate.spec };
}
