/* AutoGraph's runtime in C: loads an ONNX model and runs it on a device, with the plan that the
 * model carries. Servers link it (libautograph.so) to serve optimized models.
 *
 * Threads: every function may be called from every thread. Runs of one session take turns; sessions
 * are independent of each other. Only ag_session_destroy must be the last call on its session.
 *
 * Errors: a call that can fail returns an ag_status, and ag_last_error() then has the message. No
 * call exits the process because of its arguments or its model, and no C++ exception leaves a call.
 *
 * Trust: the model is parsed in this process. Give models that are not trusted to the service,
 * which parses them in a sandbox. */
#ifndef AUTOGRAPH_H_
#define AUTOGRAPH_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AG_API __attribute__((visibility("default")))

/* The status of a call. The numbers are those of gRPC's status codes. */
typedef enum {
  AG_OK = 0,
  AG_INVALID_ARGUMENT = 3,    /* Fix the call or the model. */
  AG_DEADLINE_EXCEEDED = 4,   /* A budget is spent. */
  AG_NOT_FOUND = 5,           /* No such file, no such device. */
  AG_RESOURCE_EXHAUSTED = 8,  /* Memory: a smaller model, or another device. */
  AG_FAILED_PRECONDITION = 9, /* E.g. no permission to read the file. */
  AG_UNIMPLEMENTED = 12,      /* An operator, type or device that this library cannot run. */
  AG_INTERNAL = 13,           /* A bug in this library. */
  AG_UNAVAILABLE = 14,        /* The device is lost: make a new session. */
  AG_DATA_LOSS = 15,          /* Stored bytes are damaged. */
  AG_UNKNOWN = 2
} ag_status;

/* Element types: the numbers are those of ONNX's TensorProto. */
typedef enum {
  AG_FLOAT32 = 1,
  AG_UINT8 = 2,
  AG_INT8 = 3,
  AG_INT16 = 5,
  AG_INT32 = 6,
  AG_INT64 = 7,
  AG_BOOL = 9, /* One byte each, 0 or 1. */
  AG_FLOAT64 = 11,
  /* Rare as inputs and outputs of a model: */
  AG_UINT16 = 4,
  AG_FLOAT16 = 10, /* IEEE half, as its 16 bits. */
  AG_UINT32 = 12,
  AG_UINT64 = 13,
  AG_BFLOAT16 = 16, /* The upper 16 bits of a float32. */
  AG_STRING = 8,    /* For ag_session_run_any only. */
  /* Of less than 8 bits too, one byte for each element: */
  AG_FLOAT8E4M3FN = 17,
  AG_FLOAT8E4M3FNUZ = 18,
  AG_FLOAT8E5M2 = 19,
  AG_FLOAT8E5M2FNUZ = 20,
  AG_UINT4 = 21,
  AG_INT4 = 22, /* As an int8_t. */
  AG_FLOAT4E2M1 = 23
} ag_dtype;

/* A loaded model on its device. */
typedef struct ag_session ag_session;

/* The name and type of an input or output. Lives as long as its session. */
typedef struct {
  const char* name; /* As in the model. */
  ag_dtype dtype;
  int32_t rank;         /* 0: a scalar. -1: an output whose sizes are known after a run, or what
                           is no tensor; then the type is that of its tensors. */
  const int64_t* shape; /* `rank` sizes, outermost first; every size is known. */
  size_t bytes;         /* Of the whole tensor: row-major, without gaps. 0 for AG_STRING. */
} ag_tensor_info;

/* What an input or output is. */
typedef enum {
  AG_TENSOR = 0,
  AG_SEQUENCE = 1, /* Of tensors of one element type. */
  AG_OPTIONAL = 2, /* A tensor, or none. */
  AG_OPTIONAL_SEQUENCE = 3
} ag_kind;

/* A tensor for ag_session_run_any, or a result of it. */
typedef struct {
  ag_dtype dtype;
  int32_t rank;
  const int64_t* shape; /* `rank` sizes, none negative. */
  const void* data;     /* Row-major, without gaps, aligned to the element's size. Of AG_STRING:
                           a const char* for each element, UTF-8 that ends with a NUL. */
} ag_tensor;

/* A value for ag_session_run_values, or a result of it: the tensors in it. */
typedef struct {
  int32_t is_none; /* Not 0: an optional that has no value; then `count` is 0. */
  size_t count;    /* 1 for a tensor, and for an optional that has one. */
  const ag_tensor* tensors;
} ag_value;

/* The outputs of one run, in the library's memory. */
typedef struct ag_results ag_results;

/* All sizes of an input of which the model leaves some open; the others must equal the model's. */
typedef struct {
  const char* input; /* Its name. */
  int32_t rank;
  const int64_t* shape; /* `rank` sizes, none negative. */
} ag_input_shape;

/* The plan that runs the model. */
typedef enum {
  AG_PLAN_CARRIED = 0, /* The plan in the model when it fits graph and environment; else
                          AG_PLAN_INPUT and a warning. */
  AG_PLAN_INPUT = 1,   /* Made here: clean-up and grouping, one stream, no rules. */
  AG_PLAN_UNFUSED = 2  /* Every operator by itself. */
} ag_plan_choice;

/* Options of a session. Zero everything, then set `size`: zero is the default of every field. */
typedef struct {
  size_t size;        /* sizeof(ag_session_options): fields may be appended later. */
  const char* device; /* NULL: "cpu" with all cores. "cpu:2", "sim:NAME", "cuda:0". */
  ag_plan_choice plan;
  int32_t streams; /* 0: as the plan says; a plan made here has several where they promise a gain,
                      tuned where they measure best. From 1: one made here has at most this many. */
  const ag_input_shape* shapes;
  size_t shapes_count;
  /* Not 0: a plan that is made here comes from measurements. Every kernel of every group is timed
   * while loading (seconds to a minute, with the machine to itself). 0: plans come from the
   * device's rates at once and may be much slower. Carried plans are measured already. */
  int32_t tune;
  /* A folder that keeps tuned plans for later sessions that tune. NULL:
   * $XDG_CACHE_HOME/autograph/tuned-plans or ~/.cache/autograph/tuned-plans. "": no folder. */
  const char* tuned_plans;
} ag_session_options;

/* Returns the library's version, e.g. "0.1.0". */
AG_API const char* ag_version(void);

/* Returns the message of the calling thread's last call that returned an error; "" before the
 * first. Valid until the thread's next failing call. */
AG_API const char* ag_last_error(void);

/* Makes a session from the bytes of an ONNX model, which may be freed after the call. `options`
 * may be NULL. On success the caller frees *out with ag_session_destroy; on an error it is NULL. */
AG_API ag_status ag_session_create(const void* onnx, size_t bytes,
                                   const ag_session_options* options, ag_session** out);

/* Makes a session from a file, which may have weights in data files beside it. Cheaper: the weights
 * are mapped, not copied, so the files must not be written to while the session lives (replacing
 * them by rename is fine). */
AG_API ag_status ag_session_create_from_file(const char* path, const ag_session_options* options,
                                             ag_session** out);

/* Frees the session; does nothing for NULL. */
AG_API void ag_session_destroy(ag_session* session);

/* Returns inputs and outputs in the model's order. A count of NULL is 0; NULL when out of range. */
AG_API size_t ag_session_input_count(const ag_session* session);
AG_API size_t ag_session_output_count(const ag_session* session);
AG_API const ag_tensor_info* ag_session_input(const ag_session* session, size_t index);
AG_API const ag_tensor_info* ag_session_output(const ag_session* session, size_t index);

/* Returns warnings of the load, e.g. why a carried plan was not used. NULL when out of range. */
AG_API size_t ag_session_warning_count(const ag_session* session);
AG_API const char* ag_session_warning(const ag_session* session, size_t index);

/* Returns 1 when the model runs with the plan that it carries, else 0. */
AG_API int ag_session_uses_carried_plan(const ag_session* session);

/* Runs the model once. One pointer per input and one per output, in their order, each to exactly
 * `bytes` bytes (ag_tensor_info), aligned to the element's size. The buffers are used in place,
 * outputs may not overlap other buffers, and contents of outputs are undefined after an error. */
AG_API ag_status ag_session_run(ag_session* session, const void* const* inputs,
                                void* const* outputs);

/* Runs as ag_session_run and sets *device_ns to the nanoseconds that the device spent (on sim:NAME
 * an estimate). `device_ns` may be NULL. */
AG_API ag_status ag_session_run_timed(ag_session* session, const void* const* inputs,
                                      void* const* outputs, int64_t* device_ns);

/* Returns 1 when the model leaves this size open, so that a run may have another one. */
AG_API int ag_session_input_is_open(const ag_session* session, size_t index, int32_t axis);

/* Runs the model once on tensors of any sizes that it leaves open, one for each input, in their
 * order; also a model whose outputs' sizes are known after a run. The first run of other sizes
 * than the session's loads the model for them; the last eight such sets stay. On success the
 * caller frees *out with ag_results_destroy; on an error it is NULL. */
AG_API ag_status ag_session_run_any(ag_session* session, const ag_tensor* inputs, size_t count,
                                    ag_results** out);

/* Returns what an input or output is; AG_TENSOR when out of range. */
AG_API ag_kind ag_session_input_kind(const ag_session* session, size_t index);
AG_API ag_kind ag_session_output_kind(const ag_session* session, size_t index);

/* Runs as ag_session_run_any, on a model that takes sequences or optionals too. */
AG_API ag_status ag_session_run_values(ag_session* session, const ag_value* inputs, size_t count,
                                       ag_results** out);

/* Returns the results in the order of the model's outputs. Count of NULL: 0; NULL: out of range,
 * and of ag_results_at an output that is no tensor, which ag_results_value gives. */
AG_API size_t ag_results_count(const ag_results* results);
AG_API const ag_tensor* ag_results_at(const ag_results* results, size_t index);
AG_API const ag_value* ag_results_value(const ag_results* results, size_t index);
AG_API void ag_results_destroy(ag_results* results); /* Does nothing for NULL. */

#ifdef __cplusplus
}
#endif

#endif /* AUTOGRAPH_H_ */
