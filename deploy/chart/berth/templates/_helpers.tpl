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

{{- define "berth.image" -}}
{{- $tag := default (replace "+" "_" .Chart.AppVersion) .Values.image.tag -}}
{{ .Values.image.repository }}{{ ternary (printf "@%s" .Values.image.digest) (printf ":%s" $tag) (ne .Values.image.digest "") }}
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
{{- with .Values.agent.appArmorProfile }}
appArmorProfile:
  {{- toYaml . | nindent 2 }}
{{- end }}
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
{{- define "berth.metrics" -}}{{ or .Values.metrics.enabled .Values.serviceMonitor.enabled .Values.map.enabled }}{{- end -}}

{{- define "berth.metricsName" -}}{{ include "berth.fullname" . }}-metrics{{- end -}}

{{- define "berth.metricsSecret" -}}{{ default (include "berth.metricsName" .) .Values.metrics.tlsSecret }}{{- end -}}

{{/* Options of agent and controller. Call with (list . port). */}}
{{- define "berth.metricsArgs" -}}
{{- if eq (include "berth.metrics" (index . 0)) "true" -}}
- --metrics-listen=*:{{ index . 1 }}
- --metrics-cert-file=/etc/berth/metrics/tls.crt
- --metrics-key-file=/etc/berth/metrics/tls.key
{{- end -}}
{{- end -}}
