{{- define "penstock.labels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- /* A deployment of one part, gateway or worker, and its disruption budget. */}}
{{- define "penstock.part" -}}
{{- $values := .root.Values }}
{{- $own := index $values .part }}
{{- $labels := include "penstock.labels" (dict "release" .root.Release "part" .part) }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .part }}
  labels: {{- $labels | nindent 4 }}
spec:
  replicas: {{ $own.replicas }}
  selector:
    matchLabels: {{- $labels | nindent 6 }}
  strategy:
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  template:
    metadata:
      labels: {{- $labels | nindent 8 }}
      annotations:
        checksum/settings: {{ $values.settings | toJson | sha256sum }}  # changed settings restart the pods
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      automountServiceAccountToken: false
      enableServiceLinks: false  # of a service called penstock, one would be PENSTOCK_PORT, which is a setting
      {{- with $values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: penstock
          image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
          imagePullPolicy: {{ $values.image.pullPolicy }}
          {{- if eq .part "worker" }}
          args: [worker, --port, "8080"]  # for probes and metrics
          {{- else }}
          args: [serve]
          env:
            - {name: PENSTOCK_WORKER, value: "false"}
          {{- end }}
          ports:
            - {name: http, containerPort: 8080}
          readinessProbe:
            httpGet: {path: /readyz, port: http}
            periodSeconds: 5
          livenessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 10
            failureThreshold: 6
          {{- if eq .part "gateway" }}
          lifecycle:
            preStop:
              sleep: {seconds: 5}  # until no new calls are sent here
          {{- end }}
          envFrom:
            - configMapRef: {name: {{ .root.Release.Name }}}
            - secretRef: {name: {{ $values.existingSecret }}}
          resources: {{- toYaml $own.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - {name: data, emptyDir: {}}
        - {name: tmp, emptyDir: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .part }}
  labels: {{- $labels | nindent 4 }}
spec:
  {{- if gt (int $own.replicas) 1 }}
  minAvailable: 1
  {{- else }}
  maxUnavailable: 1  # with one process, minAvailable would keep its node from ever being drained
  {{- end }}
  selector:
    matchLabels: {{- $labels | nindent 6 }}
{{- end }}
