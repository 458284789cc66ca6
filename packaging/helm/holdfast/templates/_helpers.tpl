{{- define "holdfast.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "holdfast.account" -}}
{{- .Values.serviceAccount.name | default (include "holdfast.name" .) -}}
{{- end -}}

{{- define "holdfast.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- /* The section kube of the config, as JSON, with what the switches of the chart mean in it. */ -}}
{{- define "holdfast.kube" -}}
{{- $kube := deepCopy (.Values.config.kube | default dict) -}}
{{- if .Values.kube.taint -}}
{{- $_ := set $kube "api" (merge (dict "taint" true) ($kube.api | default dict)) -}}
{{- end -}}
{{- if .Values.kube.dra -}}
{{- $_ := set $kube "dra" (merge (dict "enabled" true) ($kube.dra | default dict)) -}}
{{- end -}}
{{- if kindIs "bool" .Values.kube.devicePlugin -}}
{{- $_ := set $kube "device_plugin" .Values.kube.devicePlugin -}}
{{- else if and ($kube.dra | default dict).enabled (not (hasKey $kube "device_plugin")) -}}
{{- $_ := set $kube "device_plugin" false -}}
{{- end -}}
{{- if .Values.kube.features -}}
{{- $_ := set $kube "features" .Values.kube.featuresFile -}}
{{- end -}}
{{- toJson $kube -}}
{{- end -}}

{{- /* The config of the values, with that section. */ -}}
{{- define "holdfast.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $kube := fromJson (include "holdfast.kube" .) -}}
{{- if $kube -}}
{{- $_ := set $config "kube" $kube -}}
{{- end -}}
{{- /* Programs look beside themselves, which is in the image's directory. */ -}}
{{- if ne .Values.runtime.directory "/opt/holdfast/bin" -}}
{{- $_ := set $config "cdi" (merge ($config.cdi | default dict) (dict "hook" (printf "%s/holdfast-runtime" .Values.runtime.directory))) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* The port of the guard's web server; "" where it has none. */ -}}
{{- define "holdfast.port" -}}
{{- regexFind "[0-9]+$" ((.Values.config.web | default dict).listen | default "") -}}
{{- end -}}

{{- /* The volumes through which a container sees the host as a service of the host does (docs/KUBERNETES.md). */ -}}
{{- define "holdfast.hostMounts" -}}
- {name: host, mountPath: /host, mountPropagation: HostToContainer}
# The file is mounted by itself, because in a volume of a ConfigMap it is a symlink, which the programs refuse.
- {name: etc, mountPath: /host/etc/holdfast}
- {name: config, mountPath: /host/etc/holdfast/config.yaml, subPath: config.yaml, readOnly: true}
{{- end -}}
