{{- define "ldfi.labels" -}}
app.kubernetes.io/name: {{ .name | default "ldfi" }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "ldfi.selector" -}}
app.kubernetes.io/name: ldfi
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "ldfi.secretItems" -}}
{{- range concat .Values.secretKeys.options .Values.secretKeys.files }}
- {key: {{ . }}, path: {{ . }}}
{{- end }}
{{- end }}

{{- /* Names, and what the values say. */}}
{{- define "ldfi.egress" -}}
- to:
    - namespaceSelector: {}
      podSelector:
        matchLabels: {k8s-app: kube-dns}
  ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- range . }}
- ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .cidrs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "ldfi.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {app.kubernetes.io/name: ldfi, app.kubernetes.io/component: {{ . }}}
{{- end }}
