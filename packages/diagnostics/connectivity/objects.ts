/** The objects of a test: all in one namespace, so that its deletion takes all of them. */
import { SERVER_PORT, SERVER_SCRIPT, WAIT_SCRIPT } from "./probe-script.ts";

/** Finds the namespaces of tests. */
export const TEST_LABEL = "app.kubernetes.io/name=berth-test";
const LABELS = { "app.kubernetes.io/name": "berth-test" };
const SERVER_LABELS = { ...LABELS, "app.kubernetes.io/component": "server" };

export const SERVICE_PORT = 80;

/** After this the kubelet ends pods that a killed test has left: seconds. */
const POD_LIMIT_S = 900;

/** Pods on the node's network need an exception from the pod security standards. */
export function namespaceOf(name: string): object {
  const labels = { ...LABELS, "pod-security.kubernetes.io/enforce": "privileged" };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

/** Of both families where the cluster has them. */
export function serviceOf(): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "server", labels: LABELS },
    spec: {
      selector: SERVER_LABELS,
      ipFamilyPolicy: "PreferDualStack",
      ports: [{ port: SERVICE_PORT, targetPort: SERVER_PORT }],
    },
  };
}

interface TestPod {
  readonly name: string;
  readonly node: string;
  readonly image: string;
  /** On the network of its node. */
  readonly isOfNode: boolean;
}

/** Bound to its node without the scheduler: on a cordoned or tainted one, too. */
export function podOf({ name, node, image, isOfNode }: TestPod): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: isOfNode ? LABELS : SERVER_LABELS },
    spec: {
      nodeName: node,
      hostNetwork: isOfNode,
      restartPolicy: "Never",
      activeDeadlineSeconds: POD_LIMIT_S,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      tolerations: [{ operator: "Exists" }],
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65534,
        runAsGroup: 65534,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "test",
          image,
          imagePullPolicy: "IfNotPresent",
          command: ["node", "-e", isOfNode ? WAIT_SCRIPT : SERVER_SCRIPT],
          resources: { requests: { cpu: "10m", memory: "48Mi" }, limits: { memory: "192Mi" } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        },
      ],
    },
  };
}
