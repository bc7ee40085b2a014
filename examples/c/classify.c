/* Runs a model and prints its largest outputs and how long the last run took.
 *   classify MODEL.onnx [INPUT.f32]
 * INPUT.f32 holds the first input's floats, row-major; without it every input is 0.5. */
#include <autograph.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOP = 5, RUNS = 10 };

static int fail(const char* what) {
  fprintf(stderr, "classify: %s: %s\n", what, ag_last_error());
  return 1;
}

/* Memory for a tensor; floats are 0.5, everything else is 0. */
static void* make_buffer(const ag_tensor_info* info) {
  void* buffer = calloc(1, info->bytes > 0 ? info->bytes : 1);
  if (buffer != NULL && info->dtype == AG_FLOAT32) {
    float* values = buffer;
    for (size_t i = 0; i < info->bytes / sizeof(float); ++i) values[i] = 0.5f;
  }
  return buffer;
}

static int read_file(const char* path, void* buffer, size_t bytes) {
  FILE* file = fopen(path, "rb");
  const size_t got = file != NULL ? fread(buffer, 1, bytes, file) : 0;
  if (file != NULL) fclose(file);
  if (got != bytes)
    fprintf(stderr, "classify: %s: expected %zu bytes, got %zu\n", path, bytes, got);
  return got == bytes;
}

static void print_top(const ag_tensor_info* info, float* values) {
  const size_t count = info->bytes / sizeof(float);
  printf("%s:\n", info->name);
  for (size_t shown = 0; shown < TOP && shown < count; ++shown) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) {
      if (values[i] > values[best]) best = i;
    }
    printf("  [%zu] %g\n", best, values[best]);
    values[best] = -1e38f; /* Not again. */
  }
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: classify MODEL.onnx [INPUT.f32]\n");
    return 2;
  }
  ag_session* session = NULL;
  if (ag_session_create_from_file(argv[1], NULL, &session) != AG_OK) return fail("load");
  for (size_t i = 0; i < ag_session_warning_count(session); ++i) {
    fprintf(stderr, "classify: warning: %s\n", ag_session_warning(session, i));
  }
  const size_t inputs = ag_session_input_count(session), outputs = ag_session_output_count(session);
  void** in = calloc(inputs + 1, sizeof(void*));
  void** out = calloc(outputs + 1, sizeof(void*));
  for (size_t i = 0; i < inputs; ++i) in[i] = make_buffer(ag_session_input(session, i));
  for (size_t i = 0; i < outputs; ++i) out[i] = make_buffer(ag_session_output(session, i));
  if (argc > 2 && !read_file(argv[2], in[0], ag_session_input(session, 0)->bytes)) return 1;

  int64_t device_ns = 0;
  for (int run = 0; run < RUNS; ++run) { /* The first starts threads and touches all memory. */
    if (ag_session_run_timed(session, (const void* const*)in, out, &device_ns) != AG_OK) {
      return fail("run");
    }
  }
  printf("%s plan, %.3f ms\n", ag_session_uses_carried_plan(session) ? "carried" : "own",
         (double)device_ns / 1e6);
  for (size_t i = 0; i < outputs; ++i) {
    const ag_tensor_info* info = ag_session_output(session, i);
    if (info->dtype == AG_FLOAT32) print_top(info, out[i]);
    free(out[i]);
  }
  for (size_t i = 0; i < inputs; ++i) free(in[i]);
  free(in);
  free(out);
  ag_session_destroy(session);
  return 0;
}
