{{/* Beginning of all names: the release's name, with the chart's unless it contains that. 40 characters leave room for the parts behind it. */}}
{{- define "berth.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $release .Values.fullnameOverride | trunc 40 | trimSuffix "-" | trimSuffix "." -}}
{{- end -}}

{{- define "berth.agent" -}}{{ include "berth.fullname" . }}-agent{{- end -}}
{{- define "berth.controller" -}}{{ include "berth.fullname" . }}-controller{{- end -}}
{{- define "berth.hooks" -}}{{ include "berth.fullname" . }}-hooks{{- end -}}

{{/* Accounts as the API server names them to policies. */}}
{{- define "berth.agentUser" -}}system:serviceaccount:{{ .Release.Namespace }}:{{ include "berth.agent" . }}{{- end -}}
{{- define "berth.controllerUser" -}}system:serviceaccount:{{ .Release.Namespace }}:{{ include "berth.controller" . }}{{- end -}}

{{/* Call with (list . "agent"). */}}
{{- define "berth.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of pods. Call like the selector. */}}
{{- define "berth.podLabels" -}}
{{- $root := index . 0 -}}
{{- $own := (get $root.Values (index . 1) | default dict).labels | default dict -}}
{{ merge (include "berth.selector" . | fromYaml) $own $root.Values.commonLabels | toYaml }}
{{- end -}}

{{/* Labels and annotations of an object. Call with a dict of root and, where there are such, component, labels, annotations; with keep, an uninstallation with keepState leaves it. */}}
{{- define "berth.metadata" -}}
{{- $selector := include "berth.selector" (list .root (default "" .component)) | fromYaml -}}
{{- if not .component -}}{{- $_ := unset $selector "app.kubernetes.io/component" -}}{{- end -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $version := .root.Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $keep := ternary (dict "helm.sh/resource-policy" "keep") dict (and (hasKey . "keep") .root.Values.uninstall.keepState) -}}
{{- $recommended := dict "app.kubernetes.io/version" $version "app.kubernetes.io/part-of" "berth" "app.kubernetes.io/managed-by" .root.Release.Service "helm.sh/chart" $chart -}}
labels:
  {{- merge $selector (default dict .labels) .root.Values.commonLabels $recommended | toYaml | nindent 2 }}
{{- with merge $keep (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "berth.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag | replace "+" "_" -}}
{{- $repository := .Values.image.repository -}}
{{- with (.Values.global).imageRegistry -}}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") -}}
{{- end -}}
{{ $repository }}{{ ternary (printf "@%s" .Values.image.digest) (printf ":%s" $tag) (ne .Values.image.digest "") }}
{{- end -}}

{{- define "berth.imagePullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Environment of everything that calls the API server. */}}
{{- define "berth.apiServer" -}}
{{- with .Values.apiServer.host -}}
- name: KUBERNETES_SERVICE_HOST
  value: {{ . | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ $.Values.apiServer.port | quote }}
{{- end -}}
{{- end -}}

{{/* Directories and labels of the platform; see PLATFORMS in host/cli/host-checks/platforms.ts. */}}
{{- define "berth.platform" -}}
k3s: { binDir: /var/lib/rancher/k3s/data/cni, confDir: /var/lib/rancher/k3s/agent/etc/cni/net.d }
talos: { netnsDir: /var/run/netns }
openshift: { binDir: /var/lib/cni/bin, confDir: /etc/kubernetes/cni/net.d, seLinuxOptions: { type: spc_t } }
microk8s: { binDir: /var/snap/microk8s/current/opt/cni/bin, confDir: /var/snap/microk8s/current/args/cni-network }
{{- end -}}

{{/* Call with (list . "binDir" "/opt/cni/bin"). */}}
{{- define "berth.directory" -}}
{{- $root := index . 0 -}}
{{- $platform := get (include "berth.platform" $root | fromYaml) $root.Values.platform | default dict -}}
{{- coalesce (get $root.Values.cni (index . 1)) (get $platform (index . 1)) (index . 2) -}}
{{- end -}}
{{- define "berth.binDir" -}}{{ include "berth.directory" (list . "binDir" "/opt/cni/bin") }}{{- end -}}
{{- define "berth.confDir" -}}{{ include "berth.directory" (list . "confDir" "/etc/cni/net.d") }}{{- end -}}
{{- define "berth.netnsDir" -}}{{ include "berth.directory" (list . "netnsDir" "/run/netns") }}{{- end -}}

{{/* Of pods whose containers work on the node. */}}
{{- define "berth.podSecurity" -}}
{{- $platform := get (include "berth.platform" . | fromYaml) .Values.platform | default dict -}}
{{- with (.Values.agent.seLinuxOptions | default (get $platform "seLinuxOptions")) -}}
securityContext:
  seLinuxOptions:
    {{- toYaml . | nindent 4 }}
{{- end -}}
{{- end -}}

{{/* Of the agent, and of what cleans a node. */}}
{{- define "berth.agentSecurity" -}}
runAsUser: 0
runAsGroup: 0
readOnlyRootFilesystem: true
{{- if .Values.agent.privileged }}
privileged: true
{{- else }}
privileged: false
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
  add:
    {{- toYaml .Values.agent.capabilities | nindent 4 }}
{{- with .Values.agent.seccompProfile }}
seccompProfile:
  {{- toYaml . | nindent 2 }}
{{- end }}
appArmorProfile:
  type: Unconfined
{{- end }}
{{- end -}}

{{/* The CNI configuration of a network of the values. Call with (list . network name). */}}
{{- define "berth.network" -}}
{{- $root := index . 0 -}}
{{- $network := index . 1 -}}
{{- $prefix := ternary "berth-" "" $root.Values.cni.aliasesOnly -}}
{{- if $network.config -}}
{{- $network.config | toPrettyJson -}}
{{- else -}}
{{- $type := default "macvlan" $network.type -}}
{{- range $key, $types := dict "master" (list "macvlan" "ipvlan") "vlan" (list "macvlan" "ipvlan" "bridge" "sriov") "bridge" (list "bridge") -}}
  {{- if and (get $network $key) (not (has $type $types)) -}}
    {{- fail (printf "network %s: type %s ignores %s, which is for %s: remove it" (index $ 2) $type $key (join ", " $types)) -}}
  {{- end -}}
{{- end -}}
{{- $plugins := list -}}
{{- $ipam := dict "type" "berth" -}}
{{- with $network.ipv4Pools -}}{{- $_ := set $ipam "default_ipv4_ippool" . -}}{{- end -}}
{{- with $network.ipv6Pools -}}{{- $_ := set $ipam "default_ipv6_ippool" . -}}{{- end -}}
{{- $main := dict "type" $type "ipam" $ipam -}}
{{- $vlan := int (default 0 $network.vlan) -}}
{{- if has $type (list "macvlan" "ipvlan") -}}
  {{- if not $network.master -}}{{- fail (printf "network %s: master is required for type %s" (index . 2) $type) -}}{{- end -}}
  {{- $master := $network.master -}}
  {{- $bond := default dict $network.bond -}}
  {{- $device := index $master 0 -}}
  {{- $ifacer := dict "type" (printf "%sifacer" $prefix) "interfaces" $master -}}
  {{- if gt (len $master) 1 -}}
    {{- $device = default "vendor_bond0" $bond.name -}}
    {{- $keys := dict "name" $device "mode" (ternary "active-backup" $bond.mode (kindIs "invalid" $bond.mode)) -}}
    {{- with $bond.options -}}{{- $_ := set $keys "options" . -}}{{- end -}}
    {{- $_ := set $ifacer "bond" $keys -}}
  {{- end -}}
  {{- if gt $vlan 0 -}}
    {{- $_ := set $ifacer "vlanID" $vlan -}}
    {{- $device = printf "%s.%d" $device $vlan -}}
    {{- if gt (len $device) 15 -}}
      {{- $fix := ternary "set a shorter bond.name" "rename the master" (gt (len $master) 1) -}}
      {{- fail (printf "network %s: vlan %d makes the device name %q of %d characters, want at most 15: %s" (index . 2) $vlan $device (len $device) $fix) -}}
    {{- end -}}
  {{- end -}}
  {{- if or (gt (len $master) 1) (gt $vlan 0) -}}{{- $plugins = append $plugins $ifacer -}}{{- end -}}
  {{- $_ := set $main "master" $device -}}
  {{- $_ := set $main "mode" (ternary "bridge" "l2" (eq $type "macvlan")) -}}
{{- else -}}
  {{- if gt $vlan 0 -}}{{- $_ := set $main "vlan" $vlan -}}{{- end -}}
  {{- if $network.bridge -}}{{- $_ := set $main "bridge" $network.bridge -}}{{- end -}}
{{- end -}}
{{- $plugins = append $plugins (merge dict (default dict $network.plugin) $main) -}}
{{- if ne (toString $network.coordinator) "false" -}}
  {{- $plugins = append $plugins (merge (dict "type" (printf "%scoordinator" $prefix)) (default dict $network.coordinator)) -}}
{{- end -}}
{{- dict "cniVersion" (default "1.0.0" $network.cniVersion) "name" (index . 2) "plugins" $plugins | toPrettyJson -}}
{{- end -}}
{{- end -}}

{{/* "true" if metrics are served to the cluster. On that port agents also answer what the address map asks. */}}
{{- define "berth.metrics" -}}{{ or .Values.metrics.enabled .Values.serviceMonitor.enabled (.Values.map).enabled }}{{- end -}}

{{- define "berth.metricsName" -}}{{ include "berth.fullname" . }}-metrics{{- end -}}

{{/* Secrets of the servers' certificates, and of the authority that the controller signs them with. */}}
{{- define "berth.agentTls" -}}{{ default (printf "%s-agent-tls" (include "berth.fullname" .)) .Values.metrics.tlsSecret }}{{- end -}}

{{- define "berth.controllerTls" -}}{{ default (printf "%s-controller-tls" (include "berth.fullname" .)) .Values.metrics.controllerTlsSecret }}{{- end -}}

{{- define "berth.authority" -}}{{ include "berth.fullname" . }}-authority{{- end -}}

{{/* A DNS name of a component's Service. A Service's name has no dot, a release's may. */}}
{{- define "berth.serviceName" -}}
{{- $root := index . 0 -}}
{{ printf "%s.%s.svc" (include (printf "berth.%s" (index . 1)) $root | replace "." "-") $root.Release.Namespace }}
{{- end -}}

{{- define "berth.mapService" -}}{{ include "berth.fullname" . | replace "." "-" }}-map{{- end -}}

{{/* The certificates that are not somebody else's, by their Secrets: a JSON object of lists of names. */}}
{{- define "berth.certificates" -}}
{{- $certificates := dict -}}
{{- if eq (include "berth.metrics" .) "true" -}}
{{- if not .Values.metrics.tlsSecret -}}
{{- $_ := set $certificates (include "berth.agentTls" .) (list (include "berth.serviceName" (list . "agent"))) -}}
{{- end -}}
{{- if not .Values.metrics.controllerTlsSecret -}}
{{- $names := list (include "berth.serviceName" (list . "controller")) -}}
{{- if and (.Values.map).enabled (.Values.map).service -}}
{{- $names = concat (append $names (printf "%s.%s.svc" (include "berth.mapService" .) .Release.Namespace)) (.Values.map).hostNames -}}
{{- end -}}
{{- $_ := set $certificates (include "berth.controllerTls" .) $names -}}
{{- end -}}
{{- end -}}
{{- toJson $certificates -}}
{{- end -}}

{{/* "*", or the pod's address: with the node's network the node's. */}}
{{- define "berth.listenHost" -}}{{ ternary "[$(POD_IP)]" "*" (eq .Values.metrics.listen "pod") }}{{- end -}}

{{- define "berth.podAddress" -}}
{{- if and (eq (include "berth.metrics" .) "true") (eq .Values.metrics.listen "pod") -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end -}}
{{- end -}}

{{/* Options of agent and controller. Call with (list . port). */}}
{{- define "berth.metricsArgs" -}}
{{- if eq (include "berth.metrics" (index . 0)) "true" -}}
- --metrics-listen={{ include "berth.listenHost" (index . 0) }}:{{ index . 1 }}
- --metrics-cert-file=/etc/berth/metrics/tls.crt
- --metrics-key-file=/etc/berth/metrics/tls.key
{{- end -}}
{{- end -}}

{{/* The API group of an entry of retainByName. */}}
{{- define "berth.group" -}}
{{ splitList "/" .apiVersion | first }}
{{- end }}

{{/* The name of its kind in paths of the API. */}}
{{- define "berth.plural" -}}
{{ .plural | default (printf "%ss" (lower .kind)) }}
{{- end }}

{{/* Where this documentation is served, with a slash at the end: by default the project's site of this version. */}}
{{- define "berth.docs" -}}
{{- $project := printf "%s/docs/%s" .Chart.Home (.Chart.AppVersion | replace "+" "_") -}}
{{- printf "%s/" (.Values.docs.url | default $project | trimSuffix "/") -}}
{{- end -}}
