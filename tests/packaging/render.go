// render CHART NAMESPACE RELEASE VALUES.json CHART.json: what `helm template` prints, for machines without helm. The engine is the same:
// Go's text/template with the functions of sprig. Values are complete: defaults are merged by the caller.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
)

type files struct{ directory string }

func (f files) Get(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(f.directory, name))
	return string(content), err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func readJSON(path string, value any) {
	content, err := os.ReadFile(path)
	check(err)
	check(json.Unmarshal(content, value))
}

// Maps and lists by indentation, everything else as in JSON. It begins with a newline where it has lines of its own.
func toYAML(value any, depth int) string {
	indentation := "\n" + strings.Repeat("  ", depth)
	text := ""
	switch it := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(it))
		for key := range it {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			text += indentation + key + ": " + toYAML(it[key], depth+1)
		}
		if len(it) == 0 {
			return "{}"
		}
	case []any:
		for _, item := range it {
			text += indentation + "- " + toYAML(item, depth+1)
		}
		if len(it) == 0 {
			return "[]"
		}
	default:
		scalar, err := json.Marshal(it)
		check(err)
		return string(scalar)
	}
	return text
}

func main() {
	chart, namespace, release := os.Args[1], os.Args[2], os.Args[3]
	var values, about map[string]any
	readJSON(os.Args[4], &values)
	readJSON(os.Args[5], &about)
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value any) string { return strings.TrimPrefix(toYAML(value, 0), "\n") }
	functions["include"] = func(name string, data any) (string, error) {
		text := &bytes.Buffer{}
		err := all.ExecuteTemplate(text, name, data)
		return text.String(), err
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	sort.Strings(paths)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		check(err)
		_, err = all.New(filepath.Base(path)).Parse(string(content))
		check(err)
	}
	data := map[string]any{
		"Values":       values,
		"Chart":        map[string]any{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release":      map[string]any{"Name": release, "Namespace": namespace, "Service": "Helm"},
		"Files":        files{chart},
		"Capabilities": map[string]any{"KubeVersion": map[string]any{"Version": os.Getenv("KUBE_VERSION")}},
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") || name == "NOTES.txt" && os.Getenv("NOTES") == "" {
			continue
		}
		fmt.Printf("---\n# Source: %s\n", name)
		check(all.ExecuteTemplate(os.Stdout, name, data))
		fmt.Println()
	}
}
