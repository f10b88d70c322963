{{/* Binds the ValidatingAdmissionPolicy of this name, and begins it: its comment and its spec follow, so that they stay together. Call with a dict of root, name and, where there is one, component. */}}
{{- define "berth.policy" -}}
{{- $name := printf "%s-%s" (include "berth.fullname" .root) .name -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  {{- include "berth.metadata" . | nindent 2 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  {{- include "berth.metadata" . | nindent 2 }}
{{- end -}}

{{/* The node that an agent's token names, and the token's own statements. */}}
{{- define "berth.tokenVariables" -}}
- name: node
  expression: request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')
- name: found
  expression: "request.userInfo.?extra.orValue({}).size() == 0 ? 'nothing' : request.userInfo.extra.map(name, name).join(', ')"
{{- end -}}

{{/* Of these variables. */}}
{{- define "berth.tokenNamesNode" -}}
- reason: Forbidden
  expression: variables.node != ''
  messageExpression: >-
    'the token of the account {{ include "berth.agent" . }} names no node, found ' + variables.found +
    '; it must be bound to the agent\'s pod, as the kubelet mounts it in a DaemonSet, or to its node'
{{- end -}}

{{/* Binds accounts of the release to the Role of this name, without a namespace to the ClusterRole. Call with a dict of root, name, accounts and, where there are such, namespace, component, annotations. */}}
{{- define "berth.binding" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "berth.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  {{- range .accounts }}
  - kind: ServiceAccount
    name: {{ include (printf "berth.%s" .) $.root }}
    namespace: {{ $.root.Release.Namespace }}
  {{- end }}
{{- end -}}
