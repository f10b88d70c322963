{{/* A pod of the controller's image. Call with root, name, events, seconds, args. */}}
{{- define "berth.hook" }}
{{- $root := .root }}
{{- /* Not a Job: if a quota or a policy refuses the pod, Helm says so at once. Helm 3.18 or newer prints why it failed, and what a clean-up could not reach. */}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "berth.fullname" $root }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "berth.metadata" (dict "root" $root "component" "hook" "annotations" (dict "helm.sh/hook" .events "helm.sh/hook-weight" "0" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" "helm.sh/hook-output-log-policy" "hook-succeeded,hook-failed")) | nindent 2 }}
spec:
  activeDeadlineSeconds: {{ .seconds }}
  serviceAccountName: {{ include "berth.hooks" $root }}
  {{- with include "berth.imagePullSecrets" $root }}
  {{- . | nindent 2 }}
  {{- end }}
  restartPolicy: Never
  # There may be no network of pods yet, or no longer.
  hostNetwork: true
  priorityClassName: {{ $root.Values.controller.priorityClassName }}
  {{- include "berth.hookNodes" $root.Values.controller | nindent 2 }}
  {{- with $root.Values.controller.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .name }}
      image: {{ include "berth.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      command: [/usr/bin/berth-controller]
      args:
        {{- toYaml .args | nindent 8 }}
      {{- with include "berth.apiServer" $root }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      {{- include "berth.hookResources" $root | nindent 6 }}
      # A failed pod's last words stay in its status.
      terminationMessagePolicy: FallbackToLogsOnError
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: hook
          mountPath: /hook
          readOnly: true
  volumes:
    - name: hook
      configMap:
        name: {{ include "berth.hooks" $root }}
{{- end }}

{{/* A DaemonSet of a hook, on the nodes of agents. Call with root, name, and the rest of its pods. */}}
{{- define "berth.hookDaemonSet" }}
{{- $root := .root }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ include "berth.fullname" $root }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "berth.metadata" (dict "root" $root "component" .name) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "berth.selector" (list $root .name) | nindent 6 }}
  updateStrategy:
    rollingUpdate:
      maxUnavailable: 100%
  template:
    metadata:
      labels:
        {{- include "berth.podLabels" (list $root .name) | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      {{- with include "berth.imagePullSecrets" $root }}
      {{- . | nindent 6 }}
      {{- end }}
      priorityClassName: {{ $root.Values.agent.priorityClassName }}
      # A pod of the network would need an address.
      hostNetwork: true
      {{- include "berth.hookNodes" $root.Values.agent | nindent 6 }}
      terminationGracePeriodSeconds: 1
      containers:
        {{- include "berth.idle" $root | nindent 8 }}
      {{- .pod | nindent 6 }}
{{- end }}

{{/* The DaemonSet that the uninstall hook creates: its pods are Ready when their node is clean. */}}
{{- define "berth.cleaner" }}
{{- include "berth.hookDaemonSet" (dict "root" . "name" "cleaner" "pod" (include "berth.cleaning" .)) }}
{{- end }}

{{- define "berth.cleaning" -}}
{{- include "berth.podSecurity" . }}
tolerations:
  - operator: Exists
initContainers:
  - name: uninstall
    image: {{ include "berth.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [/usr/bin/berth-agent, uninstall]
    args:
      - --cni-bin-dir={{ include "berth.binDir" . }}
      - --cni-conf-dir={{ include "berth.confDir" . }}
      {{- if .Values.uninstall.keepState }}
      - --keep-state
      {{- end }}
    {{- include "berth.hookResources" . | nindent 4 }}
    securityContext:
      {{- include "berth.agentSecurity" . | nindent 6 }}
    volumeMounts:
      - name: cni-bin
        mountPath: {{ include "berth.binDir" . }}
      - name: cni-conf
        mountPath: {{ include "berth.confDir" . }}
      # Above the directories that are removed.
      - name: run
        mountPath: /run
      - name: lib
        mountPath: /var/lib
      - name: log
        mountPath: /var/log
volumes:
  - name: cni-bin
    hostPath:
      path: {{ include "berth.binDir" . }}
      type: DirectoryOrCreate
  - name: cni-conf
    hostPath:
      path: {{ include "berth.confDir" . }}
      type: DirectoryOrCreate
  - name: run
    hostPath:
      path: /run
      type: Directory
  - name: lib
    hostPath:
      path: /var/lib
      type: Directory
  - name: log
    hostPath:
      path: /var/log
      type: Directory
{{- end }}

{{/* The DaemonSet of the hook before an upgrade: a node with a Ready pod has the image. */}}
{{- define "berth.puller" }}
{{- $pod := dict "tolerations" .Values.agent.tolerations }}
{{- include "berth.hookDaemonSet" (dict "root" . "name" "puller" "pod" (toYaml $pod)) }}
{{- end }}

{{/* A container that keeps its pod Ready. */}}
{{- define "berth.idle" -}}
- name: done
  image: {{ include "berth.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [/usr/bin/node, -e, "setInterval(() => {}, 1e9)"]
  {{- include "berth.hookResources" . | nindent 2 }}
  securityContext:
    runAsUser: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
{{- end }}

{{/* The nodes of a component, whose values this is called with. Its affinity to pods is its own. */}}
{{- define "berth.hookNodes" -}}
nodeSelector:
  {{- merge (dict "kubernetes.io/os" "linux") (default dict .nodeSelector) | toYaml | nindent 2 }}
{{- with pick (default dict .affinity) "nodeAffinity" }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of containers that live for a short time. */}}
{{- define "berth.hookResources" -}}
{{- with .Values.hooks.resources -}}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
