/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets in struct thread, struct gate_frame and KPCR for gate.S; gate.c asserts that they are
 * right.
 */
#ifndef WINPMEM_KERNEL_GATE_OFFSETS_H
#define WINPMEM_KERNEL_GATE_OFFSETS_H

#define GATE_STUBS     128
#define GATE_STUB_SIZE 16

#define KPCR_THREAD    0x188

#define THREAD_TOP     0
#define THREAD_RSP     8

#define FRAME_RIP      0
#define FRAME_RSP      8
#define FRAME_RBX      16
#define FRAME_RBP      24
#define FRAME_RSI      32
#define FRAME_RDI      40
#define FRAME_R12      48
#define FRAME_R13      56
#define FRAME_R14      64
#define FRAME_R15      72
#define FRAME_ARG      80
#define FRAME_NUMBER   112
#define FRAME_SIZE     120

#endif
