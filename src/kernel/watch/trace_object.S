/* The tracer's object file, as clang made it from trace.bpf.c. */
  .section .rodata
  .balign 8
  .global hf_trace_object
  .global hf_trace_object_end
hf_trace_object:
  .incbin "trace.bpf.o"
hf_trace_object_end:

  .section .note.GNU-stack, "", %progbits
